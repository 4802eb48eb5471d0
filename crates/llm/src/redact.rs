//! Redaction of secrets in streamed deltas.
//!
//! A secret may be split over several deltas, so text at the end of a delta that could be the beginning of a
//! secret is held back until the next one.

use crate::Delta;
use bakeoff_core::{PieceRedactor, Redactor};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

type OnDelta<'a> = &'a (dyn Fn(&Delta) + Send + Sync);

/// Listener that redacts secrets in deltas and forwards them to another listener.
pub(crate) struct RedactingListener<'a> {
    redactor: &'a Redactor,
    listener: OnDelta<'a>,
    pending: Mutex<BTreeMap<DeltaChannel, PieceRedactor>>,
}

/// Text that successive deltas extend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DeltaChannel {
    Text,
    Thinking,
    Arguments(usize),
}

impl<'a> RedactingListener<'a> {
    pub(crate) fn new(redactor: &'a Redactor, listener: OnDelta<'a>) -> RedactingListener<'a> {
        RedactingListener { redactor, listener, pending: Mutex::default() }
    }

    /// Forwards the part of a delta that cannot be the beginning of a secret.
    pub(crate) fn forward(&self, delta: &Delta) {
        let (channel, text) = match delta {
            Delta::Text(text) => (DeltaChannel::Text, text),
            Delta::Thinking(text) => (DeltaChannel::Thinking, text),
            Delta::ToolCallArguments { index, json } => (DeltaChannel::Arguments(*index), json),
            Delta::ToolCallStart { .. } => return (self.listener)(delta),
        };
        let redacted = {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.entry(channel).or_insert_with(|| self.redactor.pieces()).push(text)
        };
        self.emit(channel, redacted);
    }

    /// Discards held-back text, because the response restarts.
    pub(crate) fn reset(&self) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Forwards held-back text at the end of the response.
    pub(crate) fn flush(&self) {
        let pending = {
            let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *pending)
        };
        for (channel, redactor) in pending {
            self.emit(channel, redactor.finish());
        }
    }

    fn emit(&self, channel: DeltaChannel, text: String) {
        if text.is_empty() {
            return;
        }
        (self.listener)(&match channel {
            DeltaChannel::Text => Delta::Text(text),
            DeltaChannel::Thinking => Delta::Thinking(text),
            DeltaChannel::Arguments(index) => Delta::ToolCallArguments { index, json: text },
        });
    }
}
