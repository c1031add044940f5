from discreet.audit.worst_case import AuditCase as AuditCase
from discreet.testing.checks import check_constraint as check_constraint
from discreet.testing.checks import check_loss as check_loss
from discreet.testing.checks import check_penalty as check_penalty
from discreet.testing.checks import check_solver as check_solver
from discreet.testing.laws import LawBrokenError as LawBrokenError
from discreet.testing.laws import LawResult as LawResult
