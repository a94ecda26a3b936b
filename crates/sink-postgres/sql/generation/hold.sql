-- Whoever reads or writes any generation is waited for, and waits from here on.
LOCK TABLE {marks} IN ACCESS EXCLUSIVE MODE
