//! Reservation of the likely expense of a call.

use crate::Failure;
use crate::call::CallError;
use crate::retry::ModelCall;
use bakeoff_core::{ErrorKind, NanoDollars, Usage};
use bakeoff_pace::{Expense, ExpenseEstimate, Reservation};

/// Assumed length of an answer without `max_tokens`.
pub const ANSWER_TOKENS: u64 = 200;

/// The reserved part of the budget; absent without a budget.
#[derive(Debug)]
pub(crate) struct CallReservation(Option<Reservation>);

/// Estimates the usage of a call.
fn estimate(call: ModelCall<'_>) -> Usage {
    Usage {
        input: call.request.input_tokens(),
        output: call.request.max_tokens().unwrap_or(ANSWER_TOKENS),
        ..Usage::default()
    }
}

impl CallReservation {
    /// Waits until the likely expense of a call fits into the client's budget.
    pub(crate) async fn new(
        call: ModelCall<'_>,
        retries: u32,
    ) -> Result<CallReservation, CallError> {
        let Some(budget) = &call.client.budget else { return Ok(CallReservation(None)) };
        let usage = estimate(call);
        let kind = kind(call);
        // The tokens of the prompt are estimated, too, but they cost little.
        let is_maximum = call.request.max_tokens().is_some();
        let estimate = ExpenseEstimate { expense: expense(call, &usage), is_maximum };
        let reserved = tokio::select! {
            biased;
            () = call.context.stop.cancelled() => return Err(CallError::cancelled(retries)),
            reserved = budget.reserve(&kind, estimate) => reserved,
        };
        match reserved {
            Ok(reservation) => Ok(CallReservation(Some(reservation))),
            Err(exhausted) => {
                let failure = Failure::local(ErrorKind::Budget, exhausted.to_string());
                Err(CallError::new(failure, retries))
            }
        }
    }

    /// Records the usage of the answer. Without any, the estimate counts.
    pub(crate) fn finish(self, call: ModelCall<'_>, usage: &Usage) {
        if let Some(reservation) = self.0 {
            let usage = if usage.total() > 0 { *usage } else { estimate(call) };
            reservation.finish(expense(call, &usage));
        }
    }

    /// Records a failed request, and adds its likely cost to `lost`. Providers charge for answers that arrive late or
    /// damaged.
    pub(crate) async fn after_failure(
        self,
        call: ModelCall<'_>,
        kind: ErrorKind,
        retries: u32,
        lost: &mut NanoDollars,
    ) -> Result<CallReservation, CallError> {
        if !is_charged(kind) {
            return Ok(self);
        }
        self.end_with_failure(call, kind, lost);
        CallReservation::new(call, retries).await
    }

    /// Records that the last request failed, and adds its likely cost to `lost`.
    pub(crate) fn end_with_failure(
        self,
        call: ModelCall<'_>,
        kind: ErrorKind,
        lost: &mut NanoDollars,
    ) {
        if is_charged(kind) {
            let likely = self.0.map(Reservation::forfeit);
            *lost += likely.unwrap_or_else(|| expense(call, &estimate(call))).cost;
        }
    }
}

fn is_charged(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::MalformedResponse | ErrorKind::Timeout)
}

/// Calls of the same model have similar errors of estimation.
fn kind(call: ModelCall<'_>) -> String {
    format!("{} {}", call.model.pool.endpoint, call.model.name)
}

fn expense(call: ModelCall<'_>, usage: &Usage) -> Expense {
    let cost = call.model.cost(usage).unwrap_or(NanoDollars(0));
    Expense { cost, tokens: usage.total() }
}
