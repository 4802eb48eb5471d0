//! Behaviour of a model by its name.

use super::first_user_text;
use super::reply_fault::ReplyFault;
use crate::SimModel;
use crate::request::Fault;
use bakeoff_core::Request;

/// Built-in behaviour of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BuiltinModel {
    /// Repeats the last user message.
    Echo,
    /// Answers `ok` with this probability, else `no`.
    Pass(f64),
    /// Picks the best candidate.
    Judge,
    /// Calls a tool.
    Tool,
    /// Echoes with a high latency.
    Slow,
    /// Fails with this probability, else echoes.
    Flaky(f64),
    /// Always returns this error.
    Status(u16),
    /// Returns an invalid body.
    Fault(Fault),
    /// Returns a very long answer.
    Huge,
    /// Answers about packed items, with faults.
    Packed(ReplyFault),
    /// Returns a few sentences.
    Prose,
}

impl BuiltinModel {
    /// Returns the behaviour for a name; every name has one.
    pub(crate) fn named(name: &str, defined: Option<&SimModel>) -> BuiltinModel {
        let share = |text: &str| text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
        let status = |text: &str| {
            let is_three_digits = text.len() == 3;
            text.parse().ok().filter(|status| is_three_digits && (300..=599).contains(status))
        };
        match name {
            "echo" => return BuiltinModel::Echo,
            "judge" => return BuiltinModel::Judge,
            "tool" => return BuiltinModel::Tool,
            "slow" => return BuiltinModel::Slow,
            "fault-malformed" => return BuiltinModel::Fault(Fault::Malformed),
            "fault-truncated" => return BuiltinModel::Fault(Fault::Truncated),
            "fault-nonutf8" => return BuiltinModel::Fault(Fault::NonUtf8),
            "fault-empty" => return BuiltinModel::Fault(Fault::Empty),
            "fault-huge" => return BuiltinModel::Huge,
            _ => {}
        }
        if let Some(fault) = ReplyFault::from_name(name) {
            return BuiltinModel::Packed(fault);
        }
        if let Some(share) = name.strip_prefix("pass-").and_then(share) {
            return BuiltinModel::Pass(share);
        }
        if let Some(share) = name.strip_prefix("flaky-").and_then(share) {
            return BuiltinModel::Flaky(share);
        }
        if let Some(status) = name.strip_prefix("fault-").and_then(status) {
            return BuiltinModel::Status(status);
        }
        match defined {
            Some(defined) if defined.bias.is_some() || defined.noise.is_some() => {
                BuiltinModel::Judge
            }
            _ => BuiltinModel::Prose,
        }
    }
}

impl BuiltinModel {
    /// Returns the status with which the model rejects a request for its content.
    pub(crate) fn refusal(self, request: &Request) -> Option<u16> {
        match self {
            BuiltinModel::Status(status) => Some(status),
            BuiltinModel::Packed(ReplyFault::Plain) if request.output.is_some() => Some(400),
            BuiltinModel::Packed(ReplyFault::Picky)
                if first_user_text(request).contains("REFUSE") =>
            {
                Some(400)
            }
            _ => None,
        }
    }
}

/// Returns the error code and message for a status.
pub(crate) fn error_for_status(status: u16) -> (&'static str, &'static str) {
    match status {
        400 => ("invalid_request", "The request is not valid."),
        401 => ("invalid_api_key", "Incorrect API key provided."),
        402 => ("insufficient_credits", "There is no credit left on this account."),
        403 => ("permission_denied", "This key may not use this model."),
        404 => ("model_not_found", "The model does not exist or you do not have access to it."),
        408 => ("request_timeout", "The request took too long to arrive."),
        413 => ("request_too_large", "The request is larger than the allowed maximum."),
        429 => ("rate_limit_exceeded", "Rate limit reached for requests."),
        503 => ("service_unavailable", "The service is temporarily unavailable."),
        529 => ("overloaded", "Overloaded"),
        status if status < 400 => ("moved", "This is somewhere else now."),
        status if status < 500 => ("invalid_request", "The request cannot be served."),
        _ => ("server_error", "The server had an error while processing your request."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_the_behaviour() {
        for (name, model) in [
            ("echo", BuiltinModel::Echo),
            ("pass-0.7", BuiltinModel::Pass(0.7)),
            ("pass-1", BuiltinModel::Pass(1.0)),
            ("pass-2", BuiltinModel::Prose),
            ("pass-NaN", BuiltinModel::Prose),
            ("flaky-0.25", BuiltinModel::Flaky(0.25)),
            ("fault-529", BuiltinModel::Status(529)),
            ("fault-0529", BuiltinModel::Prose),
            ("fault-200", BuiltinModel::Prose),
            ("fault-empty", BuiltinModel::Fault(Fault::Empty)),
            ("fault-huge", BuiltinModel::Huge),
            ("map", BuiltinModel::Packed(ReplyFault::None)),
            ("map-unruly", BuiltinModel::Packed(ReplyFault::Unruly)),
            ("map-other", BuiltinModel::Prose),
            ("gpt-99", BuiltinModel::Prose),
            ("", BuiltinModel::Prose),
        ] {
            assert_eq!(BuiltinModel::named(name, None), model, "{name}");
        }
        let biased = SimModel { bias: Some(0.1), ..SimModel::default() };
        assert_eq!(BuiltinModel::named("critic", Some(&biased)), BuiltinModel::Judge);
        assert_eq!(BuiltinModel::named("echo", Some(&biased)), BuiltinModel::Echo);
        let noisy = SimModel { noise: Some(0.1), ..SimModel::default() };
        assert_eq!(BuiltinModel::named("critic", Some(&noisy)), BuiltinModel::Judge);
    }
}
