//! Thresholds that separate accepted from rejected requests.
//!
//! Every kind of limit compares a quantity with a threshold: a cap the requests in flight, a token bucket the
//! quota that is not yet restored, a window the requests since its start. For the right kind, one threshold
//! explains all outcomes.

/// Quantity of a limit at the time of one request, with the uncertainty of the measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) is_accepted: bool,
}

/// The best threshold for a quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Threshold {
    /// Highest quantity at which a request is accepted.
    pub(super) max_accepted: f64,
    /// Number of requests with another outcome than the threshold predicts.
    pub(super) contradictions: u32,
}

/// Finds the threshold with the fewest contradictions, or `None` without an accepted request.
pub(super) fn find_threshold(readings: impl Iterator<Item = Reading>) -> Option<Threshold> {
    // An accepted request contradicts thresholds below its low end, a rejected one those above its high end.
    let mut edges: Vec<(f64, i32)> = readings
        .map(|reading| if reading.is_accepted { (reading.low, -1) } else { (reading.high, 1) })
        .collect();
    edges.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut contradictions = edges.iter().filter(|edge| edge.1 < 0).count() as i32;
    let mut best: Option<Threshold> = None;
    for (index, (value, change)) in edges.iter().enumerate() {
        contradictions += change;
        let is_last_of_value = edges.get(index + 1).is_none_or(|next| next.0 > *value);
        let count = contradictions.unsigned_abs();
        if is_last_of_value && best.is_none_or(|best| count < best.contradictions) {
            best = Some(Threshold { max_accepted: *value, contradictions: count });
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(value: f64, is_accepted: bool) -> Reading {
        Reading { low: value - 0.1, high: value + 0.1, is_accepted }
    }

    #[test]
    fn threshold_separates_accepted_from_rejected() {
        let readings = [(0.0, true), (2.0, true), (3.0, false), (2.9, false), (1.0, true)];
        let found = find_threshold(readings.iter().map(|(value, ok)| reading(*value, *ok)));
        assert_eq!(found, Some(Threshold { max_accepted: 1.9, contradictions: 0 }));
    }

    #[test]
    fn contradictions_count_requests_on_the_wrong_side() {
        let readings = [(1.0, true), (5.0, true), (3.0, false), (3.5, false), (4.0, false)];
        let found = find_threshold(readings.iter().map(|(value, ok)| reading(*value, *ok)));
        assert_eq!(found, Some(Threshold { max_accepted: 0.9, contradictions: 1 }));
        assert_eq!(find_threshold([].into_iter()), None);
    }
}
