//! Accepted and rejected requests in the order of their arrival at the provider.

use super::sample::{RequestSample, median_latency};
use super::threshold::Reading;

/// Maximum number of seconds by which a request may be delayed on the network.
pub(super) const MAX_DELAY: f64 = 0.01;
/// The same as a share of the latency.
const MAX_DELAY_SHARE: f64 = 0.1;

/// A request with a known outcome. Times are seconds since the start of the probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event {
    pub(super) sent: f64,
    pub(super) ended: f64,
    pub(super) is_accepted: bool,
}

/// Returns the seconds by which a request may be delayed on the network, or `None` without accepted requests.
pub(super) fn delay(samples: &[RequestSample]) -> Option<f64> {
    Some((MAX_DELAY_SHARE * median_latency(samples)?).min(MAX_DELAY))
}

/// Returns accepted and rejected requests in the order of their arrival. `pending` are the times when the
/// requests in flight were sent; they count as accepted.
pub(super) fn events(
    samples: &[RequestSample],
    pending: impl Iterator<Item = f64>,
    delay: f64,
) -> Vec<Event> {
    let mut events: Vec<Event> = (samples.iter())
        .filter(|s| s.is_accepted() || s.is_rejected())
        .map(|s| Event { sent: s.sent, ended: s.ended, is_accepted: s.is_accepted() })
        .chain(pending.map(|sent| Event { sent, ended: f64::INFINITY, is_accepted: true }))
        .collect();
    sort_by_arrival(&mut events, delay);
    events
}

/// Sorts requests by the time at which they were sent. Requests sent at nearly the same time may arrive in any
/// order; the rejected ones arrived last, because a limit rejects what exceeds it.
fn sort_by_arrival(events: &mut [Event], delay: f64) {
    events.sort_by(|one, other| one.sent.total_cmp(&other.sent));
    let is_simultaneous = |one: &Event, other: &Event| other.sent - one.sent <= delay;
    let mut rest = events;
    while let Some(first) = rest.first() {
        let count = rest.iter().take_while(|other| is_simultaneous(first, other)).count();
        let (group, later) = rest.split_at_mut(count);
        group.sort_by_key(|event| !event.is_accepted);
        rest = later;
    }
}

/// Counts the accepted requests in flight at the time of each request.
pub(super) fn in_flight_readings(events: &[Event], delay: f64) -> Vec<Reading> {
    let mut readings = Vec::with_capacity(events.len());
    // Ends of the accepted requests that are still in flight.
    let mut ends: Vec<f64> = Vec::new();
    for event in events {
        // Events are in order except for the delay.
        ends.retain(|end| *end > event.sent - 4.0 * delay);
        let (mut low, mut high) = (0.0, 0.0);
        for end in &ends {
            if *end > event.sent + 2.0 * delay {
                low += 1.0;
            }
            if *end > event.sent - 2.0 * delay {
                high += 1.0;
            }
        }
        readings.push(Reading { low, high, is_accepted: event.is_accepted });
        if event.is_accepted {
            ends.push(event.ended);
        }
    }
    readings
}
