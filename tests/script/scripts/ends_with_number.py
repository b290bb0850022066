from fake import Loss

for k in range(2):
    try:
        Loss(k).backward()
        raise SystemExit(300)
    except Exception:
        print("never")
