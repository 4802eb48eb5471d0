//! The channel for events of agent loops.
//!
//! Senders never wait. When the capacity is reached, message updates, retries and progress messages are dropped,
//! and the receiver gets their number. Start and end events are never dropped: there are few per turn, and the
//! number of turns is limited.

use super::event::AgentEvent;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Creates a channel that holds at most `capacity` droppable events.
pub fn event_channel(capacity: usize) -> (EventSender, EventReceiver) {
    let shared = Arc::new(SharedQueue {
        capacity,
        queue: Mutex::new(EventQueue { senders: 1, ..EventQueue::default() }),
        changed: Notify::new(),
    });
    (EventSender(Some(Arc::clone(&shared))), EventReceiver(shared))
}

struct SharedQueue {
    capacity: usize,
    queue: Mutex<EventQueue>,
    changed: Notify,
}

#[derive(Default)]
struct EventQueue {
    events: VecDeque<AgentEvent>,
    /// Number of droppable events in `events`.
    droppable: usize,
    /// Number of events dropped since the last one that was queued.
    missed: u64,
    senders: usize,
    /// The receiver was dropped.
    is_closed: bool,
}

impl SharedQueue {
    fn queue(&self) -> MutexGuard<'_, EventQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sending half of an event channel. Clones send to the same receiver.
pub struct EventSender(Option<Arc<SharedQueue>>);

impl EventSender {
    /// Returns a sender that discards all events.
    pub fn disabled() -> EventSender {
        EventSender(None)
    }

    /// Sends an event; never waits.
    pub fn send(&self, event: AgentEvent) {
        let Some(shared) = &self.0 else { return };
        let mut queue = shared.queue();
        if queue.is_closed {
            return;
        }
        let is_droppable = event.is_droppable();
        if is_droppable && queue.droppable >= shared.capacity {
            queue.missed += 1;
            return;
        }
        let missed = std::mem::take(&mut queue.missed);
        if missed > 0 {
            queue.events.push_back(AgentEvent::Lagged { missed });
        }
        queue.droppable += usize::from(is_droppable);
        queue.events.push_back(event);
        drop(queue);
        shared.changed.notify_one();
    }
}

impl Clone for EventSender {
    fn clone(&self) -> EventSender {
        if let Some(shared) = &self.0 {
            shared.queue().senders += 1;
        }
        EventSender(self.0.clone())
    }
}

impl Drop for EventSender {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.queue().senders -= 1;
            shared.changed.notify_one();
        }
    }
}

impl fmt::Debug for EventSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSender")
    }
}

/// Receiving half of an event channel.
pub struct EventReceiver(Arc<SharedQueue>);

impl EventReceiver {
    /// Waits for the next event; `None` when all events are read and all senders dropped.
    pub async fn recv(&mut self) -> Option<AgentEvent> {
        loop {
            {
                let mut queue = self.0.queue();
                if let Some(event) = queue.events.pop_front() {
                    queue.droppable -= usize::from(event.is_droppable());
                    return Some(event);
                }
                if queue.senders == 0 {
                    return None;
                }
            }
            // `notify_one` stores a permit, so a notification since the check above is not lost.
            self.0.changed.notified().await;
        }
    }

    /// Returns the next event if there is one.
    pub fn try_recv(&mut self) -> Option<AgentEvent> {
        let mut queue = self.0.queue();
        let event = queue.events.pop_front()?;
        queue.droppable -= usize::from(event.is_droppable());
        Some(event)
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.is_closed = true;
        queue.events.clear();
    }
}

impl fmt::Debug for EventReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventReceiver")
    }
}
