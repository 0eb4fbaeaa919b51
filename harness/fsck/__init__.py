"""A results tree held against what its files say of themselves."""

from harness.fsck.tree import LEFT_S as LEFT_S
from harness.fsck.tree import Fault as Fault
from harness.fsck.tree import TreeCheck as TreeCheck
from harness.fsck.tree import check as check
