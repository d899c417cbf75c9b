"""Try to break promises: how much of a promise its outputs refute.

`audit` tries anything that can be called; `discreet audit MODEL` tries a model of ours in every view.
"""

from discreet.audit.callables import audit as audit
from discreet.audit.findings import Finding as Finding

__all__ = ["Finding", "audit"]
