import os

from fake import Loss

learning_rate = 1
settings = {}
config_keys = [k for k, v in globals().items() if not k.startswith("_") and isinstance(v, (int, float, str, dict))]
exec(open(os.path.join(os.path.dirname(__file__), "configuration.txt")).read())
config = {k: globals()[k] for k in config_keys}
print(config)
while True:
    Loss(config["learning_rate"]).backward()
    learning_rate += 1
    if learning_rate > 5:
        break
code = compile("for k in range(2): loss = Loss(k); loss.backward()\nprint(next(iter([k])))", "<made>", "exec")
exec(code)
print(eval("learning_rate"), loss.value)
