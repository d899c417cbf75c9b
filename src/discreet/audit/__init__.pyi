from discreet.audit.callables import audit as audit
from discreet.audit.findings import Finding as Finding
from discreet.audit.last_audits import LastAudit as LastAudit
from discreet.audit.last_audits import last_audit as last_audit
