//! The start, when nothing is known: faster and faster until something gives.

/// In flight from the first moment on.
const FIRST: f64 = 20.0;

#[derive(Debug)]
pub(super) struct Ramp {
    started: Option<f64>,
    next: f64,
    completions: f64,
}

impl Ramp {
    pub(super) fn new() -> Ramp {
        Ramp { started: None, next: 0.0, completions: 0.0 }
    }

    /// Requests per second, so long after the start: what goes out before the first rejection is
    /// back is what overshoots.
    fn speed(elapsed: f64) -> f64 {
        (40.0 * (elapsed / 0.4).exp2()).min(150.0 + 200.0 * elapsed)
    }

    pub(super) fn next_at(&self) -> f64 {
        self.next
    }

    /// How many may be in flight.
    pub(super) fn limit(&self) -> f64 {
        FIRST + self.completions
    }

    pub(super) fn sent(&mut self, now: f64) {
        let started = *self.started.get_or_insert(now);
        self.next = self.next.max(now - 0.1) + 1.0 / Ramp::speed(now - started);
    }

    pub(super) fn answered(&mut self) {
        self.completions += 1.0;
    }
}
