"""Layers under a schedule: measure them, forecast a run, find the schedule that fits."""
