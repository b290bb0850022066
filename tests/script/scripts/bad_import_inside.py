from fake import Loss


def fail():
    for k in range(1):
        Loss(k).backward()
        return 1 / 0


fail()
