//! Pieces of answers without secrets. A secret may come in several pieces, so the end of a piece
//! that could be the beginning of one waits for the next.

use crate::Delta;
use bakeoff_core::{PieceRedactor, Redactor};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

type OnDelta<'a> = &'a (dyn Fn(&Delta) + Send + Sync);

/// Tells pieces to somebody who must not hear secrets.
pub(crate) struct Masked<'a> {
    redactor: &'a Redactor,
    listener: OnDelta<'a>,
    waiting: Mutex<BTreeMap<Part, PieceRedactor>>,
}

/// What a piece is a piece of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Text,
    Thinking,
    Arguments(usize),
}

impl<'a> Masked<'a> {
    pub(crate) fn new(redactor: &'a Redactor, listener: OnDelta<'a>) -> Masked<'a> {
        Masked { redactor, listener, waiting: Mutex::default() }
    }

    pub(crate) fn tell(&self, delta: &Delta) {
        let (part, piece) = match delta {
            Delta::Text(text) => (Part::Text, text),
            Delta::Thinking(text) => (Part::Thinking, text),
            Delta::ToolCallArguments { index, json } => (Part::Arguments(*index), json),
            Delta::ToolCallStart { .. } => return (self.listener)(delta),
        };
        let clean = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let pieces = waiting.entry(part).or_insert_with(|| self.redactor.pieces());
            pieces.push(piece)
        };
        self.pass_on(part, clean);
    }

    /// What has come so far is void.
    pub(crate) fn forget(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Nothing more comes.
    pub(crate) fn finish(&self) {
        let waiting = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *waiting)
        };
        for (part, pieces) in waiting {
            self.pass_on(part, pieces.finish());
        }
    }

    fn pass_on(&self, part: Part, text: String) {
        if text.is_empty() {
            return;
        }
        (self.listener)(&match part {
            Part::Text => Delta::Text(text),
            Part::Thinking => Delta::Thinking(text),
            Part::Arguments(index) => Delta::ToolCallArguments { index, json: text },
        });
    }
}
