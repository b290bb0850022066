import traceback

from fake import Loss

for k in range(2):
    Loss(k).backward()
    for name in ("bad_import_inside", "no_such_module", "package.no_such"):
        try:
            __import__(name)
        except Exception:
            traceback.print_exc()
import bad_import_inside
