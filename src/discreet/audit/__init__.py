"""Try to refute privacy guarantees from what is released.

`audit` attacks any callable; `discreet model audit MODEL` attacks a model of this package in every view.
"""

from __future__ import annotations

from discreet.core.exports import Exports

TYPE_CHECKING = False

if TYPE_CHECKING:
    from discreet.audit.callables import audit as audit
    from discreet.audit.findings import Finding as Finding
    from discreet.audit.last_audits import LastAudit as LastAudit
    from discreet.audit.last_audits import last_audit as last_audit
else:
    _exports = Exports(
        "discreet.audit",
        {
            "discreet.audit.callables": "audit",
            "discreet.audit.findings": "Finding",
            "discreet.audit.last_audits": "LastAudit last_audit",
        },
    )
    __all__ = _exports.names
    __getattr__ = _exports.find

    def __dir__() -> list[str]:
        return __all__
