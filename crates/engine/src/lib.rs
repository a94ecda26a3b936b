//! Turns, leases, delivery, scheduling and wake-ups, generic over the ports.
