//! How events get from loops to whoever listens.
//!
//! Senders never wait. Pieces of messages, retries and notes are dropped while more than the
//! channel's capacity of them wait to be read, and the reader is told how many. What begins and
//! ends is never dropped: there is a handful of it per turn, and limits bound the turns.

use super::event::AgentEvent;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Makes a channel in which at most so many droppable events wait.
pub fn event_channel(capacity: usize) -> (EventSender, EventReceiver) {
    let shared = Arc::new(Shared {
        capacity,
        queue: Mutex::new(Queue { senders: 1, ..Queue::default() }),
        news: Notify::new(),
    });
    (EventSender(Some(Arc::clone(&shared))), EventReceiver(shared))
}

struct Shared {
    capacity: usize,
    queue: Mutex<Queue>,
    news: Notify,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<AgentEvent>,
    /// Those in `events` that may be dropped.
    droppable: usize,
    /// Dropped since the last event that was not.
    missed: u64,
    senders: usize,
    /// Nobody reads any more.
    is_deserted: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells events. Clones tell the same reader.
pub struct EventSender(Option<Arc<Shared>>);

impl EventSender {
    /// A sender that nobody listens to.
    pub fn nobody() -> EventSender {
        EventSender(None)
    }

    /// Tells an event; never waits.
    pub fn send(&self, event: AgentEvent) {
        let Some(shared) = &self.0 else { return };
        let mut queue = shared.queue();
        if queue.is_deserted {
            return;
        }
        let droppable = event.may_be_dropped();
        if droppable && queue.droppable >= shared.capacity {
            queue.missed += 1;
            return;
        }
        let missed = std::mem::take(&mut queue.missed);
        if missed > 0 {
            queue.events.push_back(AgentEvent::Lagged { missed });
        }
        queue.droppable += usize::from(droppable);
        queue.events.push_back(event);
        drop(queue);
        shared.news.notify_one();
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
            shared.news.notify_one();
        }
    }
}

impl fmt::Debug for EventSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSender")
    }
}

/// Reads events.
pub struct EventReceiver(Arc<Shared>);

impl EventReceiver {
    /// The next event; `None` when all have been read and no sender is left.
    pub async fn recv(&mut self) -> Option<AgentEvent> {
        loop {
            {
                let mut queue = self.0.queue();
                if let Some(event) = queue.events.pop_front() {
                    queue.droppable -= usize::from(event.may_be_dropped());
                    return Some(event);
                }
                if queue.senders == 0 {
                    return None;
                }
            }
            // A notification that came in between is kept for us.
            self.0.news.notified().await;
        }
    }

    /// The next event, if there is one already.
    pub fn try_recv(&mut self) -> Option<AgentEvent> {
        let mut queue = self.0.queue();
        let event = queue.events.pop_front()?;
        queue.droppable -= usize::from(event.may_be_dropped());
        Some(event)
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.is_deserted = true;
        queue.events.clear();
    }
}

impl fmt::Debug for EventReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventReceiver")
    }
}
