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
pub(super) fn find_threshold(readings: &[Reading]) -> Option<Threshold> {
    let (mut max_accepted, mut min_rejected) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut has_accepted = false;
    for reading in readings {
        if reading.is_accepted {
            has_accepted = true;
            if reading.low > max_accepted {
                max_accepted = reading.low;
            }
        } else if reading.high < min_rejected {
            min_rejected = reading.high;
        }
    }
    if !has_accepted {
        return None;
    }
    if max_accepted < min_rejected {
        return Some(Threshold { max_accepted, contradictions: 0 });
    }
    // Only readings between the two can contradict a threshold; sorting the others would take most of the time.
    // An accepted request contradicts thresholds below its low end, a rejected one those from its high end on.
    let mut edges: Vec<(f64, i32)> = Vec::new();
    let (mut below, mut contradictions) = (f64::NEG_INFINITY, 0_i32);
    let mut are_counts = true;
    for reading in readings {
        if !reading.is_accepted {
            if reading.high <= max_accepted {
                edges.push((reading.high, 1));
                are_counts &= reading.high.fract() == 0.0;
            }
        } else if reading.low >= min_rejected {
            edges.push((reading.low, -1));
            are_counts &= reading.low.fract() == 0.0;
            contradictions += 1;
        } else if reading.low > below {
            below = reading.low;
        }
    }
    if are_counts {
        edges = sum_by_count(&edges, min_rejected, max_accepted);
    } else {
        edges.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    }
    let mut best = Threshold { max_accepted: below, contradictions: contradictions.unsigned_abs() };
    let mut is_first = below == f64::NEG_INFINITY;
    for (index, (value, change)) in edges.iter().enumerate() {
        contradictions += change;
        let is_last_of_value = edges.get(index + 1).is_none_or(|next| next.0 > *value);
        let count = contradictions.unsigned_abs();
        if is_last_of_value && (is_first || count < best.contradictions) {
            best = Threshold { max_accepted: *value, contradictions: count };
            is_first = false;
        }
    }
    Some(best)
}

/// Returns one edge per value from `low` to `high`, if all values are whole numbers. This takes less time than
/// sorting the edges.
fn sum_by_count(edges: &[(f64, i32)], low: f64, high: f64) -> Vec<(f64, i32)> {
    let mut sums: Vec<(f64, i32)> =
        (0..=(high - low) as usize).map(|index| (low + index as f64, 0)).collect();
    for (value, change) in edges {
        if let Some(sum) = sums.get_mut((value - low) as usize) {
            sum.1 += change;
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(values: &[(f64, bool)]) -> Option<Threshold> {
        let reading = |&(value, is_accepted): &(f64, bool)| Reading {
            low: value - 0.1,
            high: value + 0.1,
            is_accepted,
        };
        find_threshold(&values.iter().map(reading).collect::<Vec<_>>())
    }

    #[test]
    fn threshold_separates_accepted_from_rejected() {
        let found = find(&[(0.0, true), (2.0, true), (3.0, false), (2.9, false), (1.0, true)]);
        assert_eq!(found, Some(Threshold { max_accepted: 1.9, contradictions: 0 }));
    }

    #[test]
    fn whole_numbers_give_the_same_threshold_as_others() {
        let mut state = 7_u64;
        for _ in 0..200 {
            let readings: Vec<Reading> = (0..30)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let value = f64::from((state >> 60) as u32);
                    Reading { low: value, high: value, is_accepted: (state >> 40) & 3 > 0 }
                })
                .collect();
            let shifted: Vec<Reading> = (readings.iter())
                .map(|r| Reading { low: r.low + 0.5, high: r.high + 0.5, ..*r })
                .collect();
            let shift =
                |found: Threshold| Threshold { max_accepted: found.max_accepted + 0.5, ..found };
            assert_eq!(find_threshold(&readings).map(shift), find_threshold(&shifted));
        }
    }

    #[test]
    fn contradictions_count_requests_on_the_wrong_side() {
        let found = find(&[(1.0, true), (5.0, true), (3.0, false), (3.5, false), (4.0, false)]);
        assert_eq!(found, Some(Threshold { max_accepted: 0.9, contradictions: 1 }));
        let found = find(&[(1.0, false), (5.0, true), (3.0, true), (3.5, true)]);
        assert_eq!(found, Some(Threshold { max_accepted: 4.9, contradictions: 1 }));
        assert_eq!(find(&[]), None);
        assert_eq!(find(&[(1.0, false)]), None);
    }
}
