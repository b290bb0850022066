"""The PyTorch backend: watches every step, and at a hit has the right attempt run again under the recorder."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import shlex
import sys
import time
from types import CodeType
from typing import Any

import torch

from whynan.core.backend import Hit, Passing, Recorder, Replayed, Stopped
from whynan.core.incident import Incident
from whynan.core.places import user_frame
from whynan.core.session import NotReproduced, Reproduced, Session, What
from whynan.torch import _compat
from whynan.torch.artifacts import writer
from whynan.torch.choice import Steps, choose
from whynan.torch.copies import OptimizerCopy
from whynan.torch.distributed import several_ranks
from whynan.torch.evidence import may_be_non_finite
from whynan.torch.gate import Gate, all_finite, finite
from whynan.torch.guard import Guard
from whynan.torch.incidents import Found, conclude, scopes, seeds, unplaced, user_site, was_spoiled_before
from whynan.torch.loader import LoaderWatch
from whynan.torch.names import variables
from whynan.torch.noted import Noted, device_generators
from whynan.torch.policy import Policies, copies_before
from whynan.torch.registry import Registry
from whynan.torch.replay import Replay, put_back_state, tensors_in
from whynan.torch.rerun import run_step_again
from whynan.torch.scaling import SKIPS, Scaling, scales
from whynan.torch.trend import TrendWatch
from whynan.torch.trial import overflows_at_scale_one
from whynan.torch.watch import Hooks

_NOTHING = contextlib.nullcontext()
SETTLED = 3  # backwards of a place after which the attempts around it that none has chosen are taken for mere loops


class TorchBackend:
    """`trace_step`: record that step of this run from its start instead of replaying. Nothing is watched before `install`."""

    def __init__(self, recorder: Recorder, trace_step: int | None = None) -> None:
        self.recorder = recorder
        self.trace_step = trace_step
        self.watching = False
        self.limits: list[str] = []
        self.incidents: list[Incident] = []
        guard = Guard(self.give_up)
        self.registry = Registry(guard)
        self.gate = Gate()
        self.counter = Steps()
        self.policies = Policies()
        self.trend = TrendWatch()
        self.loaders = LoaderWatch(guard)
        self.scaling = Scaling(self.registry.scalers.add, guard)
        self.hooks = Hooks(self, self.registry, self.scaling, self.loaders, guard)
        self.runtime: Any = None
        self.found: Found | None = None
        self.replay: Replay | None = None
        self.spent = 0.0
        self.trial: int | None = None
        self._depth = 0
        self._copy: OptimizerCopy | None = None
        self._closure_level: int | None = None
        self._installed = time.perf_counter()
        self._process = os.getpid()
        self._finish: Stopped | None = None
        self._left_open: Replay | None = None
        self._checked: dict[int, int] = {}
        self._unspoilt = False  # told before the step: a scheduler may have changed the rate by the time it is over

    # ---- life ----

    def install(self) -> None:
        self.hooks.install()
        self.watching = True
        self._installed = time.perf_counter()
        if self.trace_step == 0:
            self._open_live_trace()

    def close(self) -> None:
        self.watching = False
        for replay in (self.replay, self._left_open):
            if replay is not None:
                replay.trace.paused = True
                replay.close()
        self.replay = self._left_open = None
        self.hooks.uninstall()

    @property
    def steps(self) -> int:
        return self.counter.done

    @property
    def overhead(self) -> float:
        spent = self.spent + (self.runtime.spent if self.runtime is not None else 0.0)
        return spent / max(time.perf_counter() - self._installed, 1e-9)

    @property
    def stack(self) -> list[Any]:
        """The attempts that a replay may choose: inside an optimizer's step only those around it."""
        attempts = self.runtime.stack if self.runtime is not None else []
        return attempts if self._closure_level is None else attempts[: self._closure_level]

    def compiles(self) -> None:
        """The program is about to compile something for the first time."""
        _compat.never_compile(_compat.compiling, _compat.set_compiler, TorchBackend.engine, TorchBackend._guarded)

    def original_code(self, code: CodeType) -> CodeType | None:
        """The user's code as it was before it was rewritten."""
        return self.runtime.sites.original_code(code) if self.runtime is not None else None

    def give_up(self, doing: str, error: BaseException) -> None:
        """A fault of ours: one line, and watching ends."""
        if self.watching:
            self.watching = False
            if self.replay is not None:
                self.replay.trace.paused, self._left_open, self.replay = True, self.replay, None
            self.limits.append(f"watching ended while {doing}: {type(error).__name__}: {error}")
            print(f"whynan: a fault of its own while {doing}, watching ends: {type(error).__name__}: {error}", file=sys.__stderr__)

    # ---- attempts ----

    def enter(self, attempt: Any) -> Noted:
        noted = Noted(
            sequence=_compat.sequence_number(),
            steps_before=self.counter.done,
            random=torch.get_rng_state(),
            devices=device_generators(),
            scales=scales(self.registry.scalers) if self.registry.scalers else [],
        )
        policy = self.policies.of(attempt)
        if policy.may_be_chosen and self.registry.modules:
            noted.buffers = policy.buffers
            noted.buffers.take([b for _, _, b in self.registry.buffers()])
        return noted

    def leave(self, attempt: Any, error: BaseException | None) -> bool:
        if self.found is not None:
            return self.found.attempt is attempt
        if isinstance(error, Exception):
            return self._by_exception(attempt, error)
        if error is None and not self._replaying and attempt.noted is not None:
            return self._after_attempt(attempt)
        return False

    def _by_exception(self, attempt: Any, error: Exception) -> bool:
        """An exception because of a non-finite value: the step that it ended is run again."""
        if self._replaying or not self.policies.replayed_for_exception(attempt, self.stack):
            return False
        if not may_be_non_finite(error, error.__traceback__):
            return False
        step = attempt.noted.steps_before if attempt.noted is not None else self.counter.done
        self.found = Found("exception", [], step, attempt, user_site(), error)
        self.runtime.diversion.start()
        return True

    def _after_attempt(self, attempt: Any) -> bool:
        noted: Noted = attempt.noted
        policy = self.policies.of(attempt)
        policy.close(noted)
        if noted.leaves is not None:
            if noted.stepped and noted.backwards == 1:
                policy.handwork.ordinary()
            bad = [t for t in noted.leaves.tensors if not finite(t)]
            if bad:
                self.found = Found("parameter", bad, noted.steps_before, attempt, user_site())
                self.runtime.diversion.start()
                return True
        return False

    @property
    def _replaying(self) -> bool:
        return self.replay is not None and self.trace_step is None

    # ---- the autograd engine ----

    def engine(self, original: Any, outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not (self.watching or self.replay) or self._depth or _compat.compiling() or os.getpid() != self._process and self.trial is None:
            return original(outputs, *args, **kwargs)
        roots = [o for o in outputs if isinstance(o, torch.Tensor)]
        accumulates = bool(kwargs.get("accumulate_grad"))
        self._guarded("checking a loss", self._before_backward, roots)
        self._depth += 1
        if self.replay is not None:
            self.replay.trace.where.engine_frames.append(user_frame(sys._getframe(1)))
        try:
            results = original(outputs, *args, **kwargs)
        finally:
            self._depth -= 1
            if self.replay is not None and self.replay.trace.where.engine_frames:
                self.replay.trace.where.engine_frames.pop()
        inputs = args[3] if len(args) > 3 else ()
        self._guarded("checking gradients", self._after_backward, roots, accumulates, results, inputs)
        return results

    def _guarded(self, doing: str, function: Any, *args: Any) -> None:
        start = time.perf_counter()
        compiler = _compat.set_compiler(None)
        try:
            with self.replay.trace.pause() if self.replay is not None else _NOTHING:
                function(*args)
        except Passing:
            raise
        except Exception as fault:
            self.give_up(doing, fault)
        finally:
            _compat.set_compiler(compiler)
            self.spent += time.perf_counter() - start

    def _before_backward(self, roots: list[torch.Tensor]) -> None:
        if self._finish is not None:
            raise self._finish
        single = len(roots) == 1 and roots[0].numel() == 1 and roots[0].is_floating_point()
        loss = float(roots[0].detach()) if single else math.nan
        bad = [r for r in roots if not finite(r)] if not single else [] if math.isfinite(loss) else roots
        if bad and not self.scaling.is_scaled(bad):
            losses = [self.scaling.unscaled(r) for r in bad]
            self._harm("loss", bad, roots, values=[v if v is not None else r for v, r in zip(losses, bad, strict=True)])
        if self._replaying:
            return
        chosen = self.counter.count(self.stack, roots)
        self._step_counted()
        if chosen is not None:
            policy = self.policies.of(chosen)
            policy.backward(chosen.noted)
            outer = itertools.takewhile(lambda a: a is not chosen, self.runtime.stack) if policy.chosen > SETTLED else ()
            self.runtime.forget_before(chosen, [a for a in outer if not self.policies.of(a).chosen])
        if single:
            unscaled = self.scaling.unscaled(roots[0])
            self.trend.loss = loss if unscaled is None else float(unscaled)

    def _after_backward(self, roots: list[torch.Tensor], accumulates: bool, results: Any, inputs: Any) -> None:
        if accumulates:
            self._learn_leaves(roots)
            leaves = self.registry.leaves()
            grads = [g for p in leaves if (g := p.grad) is not None]
        else:
            grads = [r for r in results or () if isinstance(r, torch.Tensor)]
            leaves = self.registry.note_leaves([i for i in inputs if isinstance(i, torch.Tensor)])
        if grads and self.gate.suspicious(grads):
            if accumulates:
                bad = [p for p in leaves if p.grad is not None and not finite(p.grad)]
                values = [p.grad for p in bad]
            else:
                pairs = [(i, r) for i, r in zip(inputs, results, strict=False) if isinstance(r, torch.Tensor) and not finite(r)]
                pairs = [(i, r) for i, r in pairs if not self._is_probe(i)]
                bad, values = [i for i, _ in pairs], [r for _, r in pairs]
            if bad and not self._belongs_to_scale(roots, bad, values):
                self._harm("gradient", bad, roots, values=values)
        if accumulates:
            self._checked = versions_of(grads)
            self._check_buffers(roots)
            leaves = [p for p in leaves if p.grad is not None]
        self._note_handwork(leaves)

    def _is_probe(self, tensor: torch.Tensor) -> bool:
        """A gradient taken of an input (saliency, adversarial noise): if it matters it comes back in a loss or in a `.grad`."""
        if not tensor.is_leaf or isinstance(tensor, torch.nn.Parameter) or self.registry.owns(tensor):
            return False
        chosen = self.counter.last
        return chosen is not None and any(tensor.shape == given.shape for given in tensors_in(chosen.batch))

    def _learn_leaves(self, roots: list[torch.Tensor]) -> None:
        """Leaves without an optimizer are looked for in a place's first steps, and always where there were some."""
        chosen = self.counter.last
        policy = self.policies.of(chosen) if chosen is not None else None
        if policy is None or not policy.settled or policy.fresh_leaves:
            found = self.registry.learn_leaves(roots)
            if policy is not None and found:
                policy.fresh_leaves = True

    def _note_handwork(self, leaves: list[torch.Tensor]) -> None:
        """Copy what an update that is no optimizer's step may overwrite, while it is still as the forward saw it."""
        chosen = self.counter.last
        if chosen is None or chosen.noted is None or self._replaying:
            return
        handwork = self.policies.of(chosen).handwork
        if handwork.after_backward(leaves, chosen.noted):
            self.policies.say_once(self.limits, "updates without an optimizer's step: a copy of their parameters is kept for a replay")

    def _check_buffers(self, roots: list[torch.Tensor]) -> None:
        known = self.registry.buffers() if self.registry.modules else []
        bad = [buffer for _, _, buffer in known if not finite(buffer)] if not all_finite(b for _, _, b in known) else []
        if bad:
            self._harm("buffer", bad, roots)

    def _belongs_to_scale(self, roots: list[torch.Tensor], bad: list[torch.Tensor], values: list[Any]) -> bool:
        """Whether a scale of 1 gives finite gradients: then the scaler will skip the step and lower the scale, as it should."""
        if self.replay is not None or not self.scaling.is_scaled(roots):
            return False
        if self.scaling.tried:
            return True
        self.scaling.tried = True
        if self.scaling.skipped >= SKIPS:
            return False
        chosen = choose(self.stack, roots)
        if chosen is None:
            return True
        overflows = overflows_at_scale_one(self, Found("gradient", bad, self.counter.done, chosen, None, None, True))
        return not overflows

    # ---- optimizers ----

    def before_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.replay is not None:
            self.replay.trace.where.optimizer_depth += 1
        if self.watching and os.getpid() == self._process or self._replaying:
            self._guarded("checking gradients before a step", self._before_step, optimizer, _closure(args, kwargs))

    def after_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.replay is not None:
            self.replay.trace.where.optimizer_depth -= 1
        if self.watching and os.getpid() == self._process or self._replaying:
            self._guarded("checking parameters after a step", self._after_step, optimizer)

    def _before_step(self, optimizer: Any, closure: bool) -> None:
        if self._finish is not None:
            raise self._finish
        self.registry.met_optimizer(optimizer)
        self.scaling.optimizer_stepped(optimizer)
        if closure and not self._replaying:
            self._closure_level = len(self.runtime.stack)
        character = self.registry.character(optimizer)
        parameters = character.parameters
        grads = [g for p in parameters if (g := p.grad) is not None]
        known = self._checked
        unchanged = not self.runtime.sites.touches_gradients and all(known.get(id(g)) == g._version for g in grads)
        if not unchanged and not closure and not self._skips_inside(optimizer) and self.gate.suspicious(grads):
            bad = [p for p in parameters if p.grad is not None and not finite(p.grad)]
            if bad:
                self._harm("gradient", bad, [], values=[p.grad for p in bad])
        if self._replaying:
            return
        if self.trend.due(self.counter.done):
            self.trend.measure(optimizer)
        chosen = self.counter.last
        policy = self.policies.of(chosen) if chosen is not None else None
        self._unspoilt = character.cannot_spoil(optimizer, self.trend.loss)
        self._copy = OptimizerCopy(optimizer) if copies_before(optimizer, character, closure, policy) else None
        running = chosen if chosen in self.stack and not closure else self._innermost()
        if self._copy is not None and running is not None and running.noted is not None:
            running.noted.written.append(self._copy)
        if self._copy is not None and policy is not None and policy.settled:
            self.policies.say_once(self.limits, f"{type(optimizer).__name__}: a copy of its parameters and state is kept for a replay")

    def _innermost(self) -> Any:
        """The attempt that a closure's backward will choose, as far as can be told before it has run."""
        known = (a for a in reversed(self.stack) if self.policies.of(a).chosen)
        return next(known, self.stack[-1] if self.stack else None)

    def _skips_inside(self, optimizer: Any) -> bool:
        """A fused optimizer is called for a skipped step too and looks at the scaler's flag itself."""
        flag = getattr(optimizer, "found_inf", None)
        return isinstance(flag, torch.Tensor) and bool(flag.item())

    def _after_step(self, optimizer: Any) -> None:
        self._closure_level = None
        character = self.registry.character(optimizer)
        bad: list[torch.Tensor] = []
        if not self._unspoilt and self._spoiled(character.parameters):
            bad = [p for p in character.parameters if not finite(p)]
        if bad and self._replaying:
            self._again("parameter", bad)
        if bad:
            self._by_optimizer(optimizer, bad)
        chosen = self.counter.last
        if chosen is not None and chosen.noted is not None:
            chosen.noted.stepped = True
            self.policies.of(chosen).handwork.stepped = True
        if not self._replaying:
            self.trend.after_update()
            self.recorder.step(*self.trend.close_step(max(self.counter.done - 1, 0), optimizer))

    def _spoiled(self, parameters: list[torch.Tensor]) -> bool:
        """Read-only where other processes may write the same memory."""
        if any(p.is_shared() for p in parameters):  # type: ignore[no-untyped-call]
            return not all_finite(parameters)
        return self.gate.suspicious([p.detach() for p in parameters])

    def _by_optimizer(self, optimizer: Any, bad: list[torch.Tensor]) -> None:
        """The update itself made the bad values: undo it and run it again under the recorder, right here."""
        step = max(self.counter.done - 1, 0)
        found = Found("parameter", bad, step, None, user_site(4))
        if self.replay is not None:
            self._finish_live(found, bad)
        replay, seed = run_step_again(self.registry, optimizer, self._copy, found)
        self._conclude(found, replay, replay_result(replay, seed, self._trace_command(step)), seed)

    # ---- hits ----

    def _harm(self, what: What, tensors: list[torch.Tensor], roots: list[torch.Tensor], values: list[Any] | None = None) -> None:
        values = values if values is not None else list(tensors)
        if self._replaying:
            self._again(what, values)
            return
        chosen = choose(self.stack, roots) if roots else self.counter.last
        if chosen is not None and chosen not in self.stack:
            chosen = None
        step = self.counter.index_of(chosen, self.stack) if chosen is not None else max(self.counter.done - (what != "loss"), 0)
        found = Found(what, tensors, step, chosen, user_site(4), gradients=values if what == "gradient" else [])
        found.scale_one = what == "gradient" and self.scaling.is_scaled(roots)
        if self.replay is not None:
            self._finish_live(found, values)
        if chosen is None:
            self._conclude(found, None, NotReproduced(self._why_unplaced(), self._trace_command(step)), ())
        held = variables(scopes())
        found.names = {id(t): held[id(t)] for t in tensors if id(t) in held}
        self.found = found
        self.runtime.diversion.start()
        raise Hit(what)

    def _why_unplaced(self) -> str:
        if not self.stack:
            return "the loop that runs this step is not one that could be rewritten (an installed package's, or a body that yields)"
        return "the forward of this step began before any loop or function body that could be run again"

    def _again(self, what: What, values: list[torch.Tensor]) -> None:
        """Something is not finite in the replay: it counts if it is what was found."""
        found, replay = self.found, self.replay
        if found is None or replay is None or found.what != what:
            return
        replay.again = values
        raise Replayed(what)

    # ---- replays ----

    def begin_replay(self, attempt: Any) -> None:
        assert self.found is not None
        self.scaling.force_one = self.found.scale_one
        put_back_state(attempt.noted, self.registry, scale_one=self.found.scale_one)
        self.replay = Replay(self.registry)
        carried = [value for name, value in attempt.names.items() if name not in attempt.site.target]
        self.replay.open(attempt.batch, carried)

    def close_trace(self) -> None:
        if self.replay is not None:
            self.replay.close()

    def end_replay(self, attempt: Any, error: BaseException | None, reasons: list[str]) -> None:
        found, replay = self.found, self.replay
        assert found is not None
        assert replay is not None
        same = isinstance(error, Replayed)
        if found.what == "exception":
            same = type(error) is type(found.error) and str(error) == str(found.error)
        elif found.what == "parameter" and error is None:
            replay.again = [t for t in found.tensors if not finite(t)]
            same = bool(replay.again)
        if self.trial is not None:
            os.write(self.trial, b"1" if same else b"0")
            os._exit(0)
        if isinstance(error, (KeyboardInterrupt, SystemExit)) and not same:
            return
        if same:
            seed = seeds(found, replay.trace, replay.again)
            if found.what == "exception" and not _leads_back(seed, replay):
                self.found, self.replay = None, None
                self.runtime.diversion.stop()
                return
            self._conclude(found, replay, Reproduced(replay.seconds), seed)
        reason = "; ".join(reasons) or self._how_it_ended(error)
        self._conclude(found, replay, NotReproduced(reason, self._trace_command(found.step), replay.seconds), ())

    def replay_failed(self, attempt: Any, fault: Exception) -> None:
        """A fault of ours while a step was run again: the incident stands, without a place."""
        found = self.found
        assert found is not None
        result = NotReproduced(f"a fault of whynan's own: {type(fault).__name__}: {fault}", self._trace_command(found.step))
        self.watching, self.replay = False, None
        self.limits.append(result.reason)
        incident = Incident(Session(found.step, found.what, site=found.site, replay=result, trend=self.trend.trend), None)
        self.incidents.append(incident)
        self.recorder.incident(incident, None)
        self._finish = Stopped("an incident was recorded")
        raise self._finish

    def _how_it_ended(self, error: BaseException | None) -> str:
        assert self.found is not None
        if self.replay is not None and self.replay.trace.fault is not None:
            return f"a fault of whynan's own while recording: {self.replay.trace.fault}"
        if error is None and several_ranks():
            return "run again without the other ranks, the step stayed finite: the bad value came from one of them"
        if error is None:
            return f"run again, the step stayed finite: the {self.found.what} did not become non-finite a second time"
        return f"run again, the step ended with {type(error).__name__}: {error}"

    def _trace_command(self, step: int) -> str:
        run = self.recorder.run
        return f"whynan run --trace-step {step} {run.script} {shlex.join(run.argv)}".rstrip()

    def _conclude(self, found: Found, replay: Replay | None, result: Reproduced | NotReproduced, seed: Any) -> None:
        """Record the incident and end the run."""
        trace = replay.trace if replay is not None else None
        extra: dict[str, Any] = {"trend": self.trend.trend, "dataset_indices": self.loaders.current}
        if trace is not None and trace.fault is not None:
            self.limits.append(f"a fault of its own while recording the replay: {type(trace.fault).__name__}: {trace.fault}")
        self.watching, self.replay = False, None
        if self.runtime is not None:
            self.runtime.diversion.start()
        incident = conclude(found, trace, self.registry, result, seed, extra)
        if self.trace_step is None and found.step > 0 and was_spoiled_before(incident, self.registry):
            incident = unplaced(incident, self._trace_command(found.step - 1))
        if self._left_open is not None and incident.birth is not None:
            incident.session.step = self._left_open.step_of(incident.birth.operation, found.step)
        self.incidents.append(incident)
        batch = found.attempt.batch if found.attempt is not None else ()
        self.recorder.incident(incident, writer(incident, trace, batch))
        self._finish = Stopped("an incident was recorded")
        raise self._finish

    # ---- tracing a step of this run ----

    def _step_counted(self) -> None:
        if self.trace_step is not None and self.replay is not None:
            self.replay.marks.append((len(self.replay.trace.operations), self.counter.done))
        if self.trace_step is not None and self.replay is None and self.counter.done == self.trace_step:
            self._open_live_trace()

    def _open_live_trace(self) -> None:
        self.replay = Replay(self.registry)
        self.replay.marks.append((0, self.counter.done))
        self.replay.open(())

    def _finish_live(self, found: Found, values: list[torch.Tensor]) -> None:
        assert self.replay is not None
        replay = self._left_open = self.replay
        replay.trace.paused = True
        self._conclude(found, replay, Reproduced(replay.seconds), seeds(found, replay.trace, values))


def replay_result(replay: Replay, seed: Any, command: str) -> Reproduced | NotReproduced:
    if seed:
        return Reproduced(replay.seconds)
    return NotReproduced("run again, the optimizer's step wrote finite values", command, replay.seconds)


def versions_of(tensors: list[torch.Tensor]) -> dict[int, int]:
    """By the tensor's id; the same id with the same version is the same content, as long as the gradient lives."""
    return {id(t): t._version for t in tensors}


def _closure(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the step was given a closure; the hook's arguments begin with the optimizer itself."""
    return any(a is not None for a in args[1:]) or kwargs.get("closure") is not None


def _leads_back(seed: Any, replay: Replay) -> bool:
    """Whether the last operation before the exception read something non-finite."""
    index = seed[0].operation if seed else None
    return index is not None and any(not o.stats.finite for o in replay.trace.operations[index].inputs)
