import atexit
import sys
import threading
import time

from fake import Loss

atexit.register(print, "at exit")


def later():
    time.sleep(0.05)
    print("thread")


threading.Thread(target=later).start()
for k in range(2):
    Loss(k).backward()
    if k:
        sys.exit("the reason")
