from fake import Loss

for i in range(6):
    if i == 1:
        continue
    if i == 4:
        break
    Loss(i).backward()
else:
    print("not reached")

for i in range(2):
    Loss(i).backward()
    continue
else:
    print("for-else", i)

n = 0
while n < 3:
    n += 1
    if n == 2:
        continue
    Loss(n).backward()
else:
    print("while-else", n)

while True:
    n += 1
    Loss(n).backward()
    if n > 5:
        break
else:
    print("not reached")

for a, (b, *c) in [(1, (2, 3, 4)), (5, (6,))]:
    for d in c:
        Loss(d).backward()
        if d == 3:
            break
    else:
        print("inner else", a, b, c)
print(i, n, a, b, c, d)


def search(limit):
    for i in range(10):
        for j in range(10):
            Loss((i, j)).backward()
            if i * 10 + j == limit:
                return i, j
            if j == 1:
                break
        else:
            print("never")
    return None


print(search(11), search(99))


def first():
    while True:
        try:
            Loss("try").backward()
            return "returned"
        finally:
            print("finally")


def overridden():
    for k in range(3):
        try:
            Loss(k).backward()
            if k == 1:
                raise ValueError(k)
        except ValueError as error:
            print("caught", error)
            continue
        else:
            print("else", k)
        finally:
            print("finally", k)
            if k == 2:
                break
    return k


print(first(), overridden())


def swallow():
    for k in range(2):
        try:
            raise KeyError(k)
        finally:
            Loss(k).backward()
            continue
    return "swallowed"


print(swallow())
