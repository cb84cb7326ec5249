"""The Lua layer: one operation a file, the key names, the state table, the errors, and the loader that binds them."""

from .keys import Index, Keys, check_tenant
from .loader import Begun, Call, Faults, Scripts

__all__ = ["Begun", "Call", "Faults", "Index", "Keys", "Scripts", "check_tenant"]
