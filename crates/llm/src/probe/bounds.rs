//! Bounds of a probe.

/// Bounds of a probe. Times are seconds since its start.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeBounds {
    pub(super) max_requests: u32,
    pub(super) max_connections: u32,
    pub(super) max_seconds: f64,
}

impl ProbeBounds {
    /// Returns the number of requests after which measuring ends; a tenth is left for the confirmation.
    pub(super) fn measure_budget(&self) -> u32 {
        self.max_requests - self.max_requests / 10
    }
}
