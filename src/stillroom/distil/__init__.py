"""Distilling: a private collection becomes a release.

The package is callable, `stillroom.distil(notes, plan, …)`, and that is `stillroom.distil.run.release`: a package and a
function of one name would otherwise shadow each other, whichever is imported first.
"""

import sys
from types import ModuleType
from typing import Any


class _Distil(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from stillroom.distil.run import release

        return release(*args, **kwargs)


sys.modules[__name__].__class__ = _Distil
