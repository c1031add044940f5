from discreet.report.blocks import Report as Report
from discreet.report.signed import sign_file as sign_file
from discreet.report.signed import verify_file as verify_file
from discreet.report.write import report_of as report_of
from discreet.report.write import write_report as write_report
