import argparse

from package.inner import train

parser = argparse.ArgumentParser()
parser.add_argument("--n", type=int, default=1)
if __name__ == "__main__":
    args = parser.parse_args()
    for k in range(args.n):
        train(k)
    print(__name__, __spec__.name)
