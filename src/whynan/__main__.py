"""`python -m whynan` is the same as `whynan`."""

from whynan.cli.main import main

if __name__ == "__main__":
    main()
