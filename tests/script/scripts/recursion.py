from fake import Loss

for k in range(2):
    Loss(k).backward()


def down(n):
    return down(n + 1)


down(0)
