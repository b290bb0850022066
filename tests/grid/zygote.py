"""Forks one process a script from a parent that has torch and whynan in memory, because importing them costs more than a script.

Run as `python -c <this text>`, so that no frame of it passes for the user's. Requests come as JSON lines on standard input, answers go out
on what standard output was. The parent never runs an operation of torch's that starts threads.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import sys
import threading
import time
import types


def serve():
    """Answer requests; returns in a child, with its request."""
    requests, answers = os.fdopen(os.dup(0), "r"), os.fdopen(os.dup(1), "w")
    for number in (0, 1):
        os.dup2(os.open(os.devnull, os.O_RDWR), number)
    answers.write("ready\n")
    answers.flush()
    for line in requests:
        request = json.loads(line)
        start = time.perf_counter()
        child = os.fork()
        if child == 0:
            os.setsid()
            os.close(answers.fileno())
            return request
        answers.write(json.dumps({"status": wait(child, request["limit"]), "seconds": time.perf_counter() - start}) + "\n")
        answers.flush()
    sys.exit()


def wait(child, limit):
    """The exit status, negative for a signal; None where it had to be killed."""
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            kill_group(child)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    kill_group(child)
    os.waitpid(child, 0)
    return None


def kill_group(child):
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def settle(request):
    """Be a fresh process in its folder."""
    os.chdir(request["cwd"])
    os.environ.update(request["environment"])
    for number, path in ((1, request["stdout"]), (2, request["stderr"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    sys.path[0] = "/usr/bin"
    if request["pythonpath"]:
        sys.path.insert(1, request["pythonpath"])


def run_plain(argv):
    """As `python SCRIPT ARGS` or `python -m MODULE ARGS`."""
    if argv[0] == "-m":
        sys.path[0] = os.getcwd()
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        return
    path = os.path.abspath(argv[0])
    sys.argv, sys.path[0] = argv, os.path.dirname(path)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    module.__file__ = argv[0]
    with open(path) as file:
        code = compile(file.read(), path, "exec")
    exec(code, module.__dict__)


def run_watched(argv):
    sys.argv = ["whynan", *argv]
    from whynan.cli.main import main

    main()


def main():
    import torch

    torch.set_num_threads(1)
    for name in sys.argv[1:]:
        __import__(name)
    gc.collect()
    gc.freeze()  # what is here already is of no interest to a child, and not touching it saves the copies of its pages
    request = serve()
    settle(request)
    if request["probe"]:
        probe = types.ModuleType("grid_probe")
        with open(request["probe"]) as file:
            exec(compile(file.read(), "<probe>", "exec"), probe.__dict__)
        probe.install(request["events"])
    leave(status_of(run_watched if request["watched"] else run_plain, request["argv"]))


def status_of(run, argv):
    try:
        run(argv)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def leave(status):
    """End as an interpreter does, but for taking the modules apart, which costs more than a script."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
