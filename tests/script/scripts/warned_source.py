from fake import Loss

pattern = "\d"
for k in range(2):
    Loss(k).backward()
    if k is 1:
        print("is", pattern)
