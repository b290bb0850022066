"""Batches whose labels are all of one class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from whynan.core.signs.sign import Sign

BATCHES = 40
ROWS = 4  # labels of a batch, on average
FULL, ALONE = 0.99, 0.95
LEARNED = 0.1  # of the first loss


class OneClassBatches(Sign):
    """Either one class fills all batches, or each batch holds a single class (sorted data).

    A target that is the same in every row of every batch can be meant so (the positive pair is always number 0): that is told only once the
    loss has all but vanished, when there is nothing to learn any more."""

    name = "one-class-batches"

    def __init__(self) -> None:
        super().__init__()
        self._all: Counter[float] = Counter()
        self._alone: Counter[float] = Counter()
        self._batches = 0
        self._first_loss: float | None = None

    def add(self, step: int, counts: Mapping[float, int], loss: float | None) -> None:
        self._all.update(counts)
        self._batches += 1
        if len(counts) == 1:
            self._alone.update(counts.keys())
        if self._first_loss is None:
            self._first_loss = loss
        total = self._all.total()
        if self._batches < BATCHES or total < ROWS * self._batches:
            return
        label, most = self._all.most_common(1)[0]
        if most >= FULL * total:
            if most < total or self._is_learned(loss):
                share = "all" if most == total else f"{most / total:.2%}"
                self.say(
                    step,
                    f"{share} of the {total} labels in the {self._batches} batches seen are of one class ({label:g}): the model learns "
                    f"to answer just that. Check how labels are made and drawn; balance the classes or weight the rare ones",
                )
        elif self._alone.total() >= ALONE * self._batches and len(self._alone) > 1 and total >= 2 * ROWS * self._batches:
            self.say(
                step,
                f"{self._alone.total()} of {self._batches} batches seen hold labels of one class only, not always the same: the data is "
                f"not shuffled, and the model is pulled from one class to the next. Shuffle it",
            )

    def _is_learned(self, loss: float | None) -> bool:
        return loss is not None and self._first_loss is not None and abs(loss) <= LEARNED * abs(self._first_loss)
