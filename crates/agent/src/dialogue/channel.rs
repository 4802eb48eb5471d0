//! The channel for events of agent loops.
//!
//! Senders never wait. When the capacity is reached, message updates, retries and progress messages are dropped,
//! and the receiver gets their number. Start and end events are never dropped: there are few per turn, and the
//! number of turns is limited.

use super::event::AgentEvent;
use futures_util::Stream;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Creates a channel that holds at most `capacity` droppable events.
pub fn event_channel(capacity: usize) -> (EventSender, EventReceiver) {
    let shared = Arc::new(SharedQueue {
        capacity,
        queue: Mutex::new(EventQueue { senders: 1, ..EventQueue::default() }),
    });
    (EventSender(Some(Arc::clone(&shared))), EventReceiver(shared))
}

struct SharedQueue {
    capacity: usize,
    queue: Mutex<EventQueue>,
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
    /// Task that waits for the next event.
    waker: Option<Waker>,
}

impl SharedQueue {
    fn queue(&self) -> MutexGuard<'_, EventQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the receiver, after the lock is released.
    fn wake(mut queue: MutexGuard<'_, EventQueue>) {
        let waker = queue.waker.take();
        drop(queue);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl EventQueue {
    fn pop(&mut self) -> Option<AgentEvent> {
        let event = self.events.pop_front()?;
        self.droppable -= usize::from(event.is_droppable());
        Some(event)
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
        SharedQueue::wake(queue);
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
            let mut queue = shared.queue();
            queue.senders -= 1;
            SharedQueue::wake(queue);
        }
    }
}

impl fmt::Debug for EventSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSender")
    }
}

/// Receiving half of an event channel. It is also a [`Stream`] of events, which ends as [`EventReceiver::recv`]
/// does.
pub struct EventReceiver(Arc<SharedQueue>);

impl EventReceiver {
    /// Waits for the next event; `None` when all events are read and all senders dropped.
    pub async fn recv(&mut self) -> Option<AgentEvent> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// Returns the next event if there is one.
    pub fn try_recv(&mut self) -> Option<AgentEvent> {
        self.0.queue().pop()
    }

    fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        let mut queue = self.0.queue();
        if let Some(event) = queue.pop() {
            return Poll::Ready(Some(event));
        }
        if queue.senders == 0 {
            return Poll::Ready(None);
        }
        queue.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Stream for EventReceiver {
    type Item = AgentEvent;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        self.get_mut().poll_recv(context)
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.is_closed = true;
        queue.events.clear();
        queue.waker = None;
    }
}

impl fmt::Debug for EventReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventReceiver")
    }
}
