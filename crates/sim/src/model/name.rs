//! What a model does, by its name.

use super::first_user_text;
use super::mischief::Mischief;
use crate::Persona;
use crate::ask::Fault;
use bakeoff_core::Request;

/// What a model does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Model {
    /// Repeats the last user message.
    Echo,
    /// Says `ok` with this probability, else `no`.
    Pass(f64),
    /// Picks the best candidate.
    Judge,
    /// Calls a tool.
    Tool,
    /// Echoes after a long time.
    Slow,
    /// Fails with this probability, else echoes.
    Flaky(f64),
    /// Always this error.
    Status(u16),
    /// A body that cannot be read.
    Fault(Fault),
    /// A very long answer.
    Huge,
    /// Answers about packed items, well or badly.
    Packed(Mischief),
    /// A few sentences.
    Prose,
}

impl Model {
    /// The model of this name; every name is one.
    pub(crate) fn named(name: &str, persona: Option<&Persona>) -> Model {
        let share = |text: &str| text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
        let status = |text: &str| {
            let three = text.len() == 3;
            text.parse().ok().filter(|status| three && (300..=599).contains(status))
        };
        match name {
            "echo" => return Model::Echo,
            "judge" => return Model::Judge,
            "tool" => return Model::Tool,
            "slow" => return Model::Slow,
            "fault-malformed" => return Model::Fault(Fault::Malformed),
            "fault-truncated" => return Model::Fault(Fault::Truncated),
            "fault-nonutf8" => return Model::Fault(Fault::NonUtf8),
            "fault-empty" => return Model::Fault(Fault::Empty),
            "fault-huge" => return Model::Huge,
            _ => {}
        }
        if let Some(mischief) = Mischief::named(name) {
            return Model::Packed(mischief);
        }
        if let Some(share) = name.strip_prefix("pass-").and_then(share) {
            return Model::Pass(share);
        }
        if let Some(share) = name.strip_prefix("flaky-").and_then(share) {
            return Model::Flaky(share);
        }
        if let Some(status) = name.strip_prefix("fault-").and_then(status) {
            return Model::Status(status);
        }
        match persona {
            Some(persona) if persona.bias.is_some() || persona.noise.is_some() => Model::Judge,
            _ => Model::Prose,
        }
    }
}

impl Model {
    /// The status with which a request is refused for what it is.
    pub(crate) fn refusal(self, request: &Request) -> Option<u16> {
        match self {
            Model::Status(status) => Some(status),
            Model::Packed(Mischief::Plain) if request.output.is_some() => Some(400),
            Model::Packed(Mischief::Picky) if first_user_text(request).contains("REFUSE") => {
                Some(400)
            }
            _ => None,
        }
    }
}

/// The error that a provider gives with this status: its word for it and its sentence.
pub(crate) fn error_words(status: u16) -> (&'static str, &'static str) {
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
    fn names_say_what_models_do() {
        for (name, model) in [
            ("echo", Model::Echo),
            ("pass-0.7", Model::Pass(0.7)),
            ("pass-1", Model::Pass(1.0)),
            ("pass-2", Model::Prose),
            ("pass-NaN", Model::Prose),
            ("flaky-0.25", Model::Flaky(0.25)),
            ("fault-529", Model::Status(529)),
            ("fault-0529", Model::Prose),
            ("fault-200", Model::Prose),
            ("fault-empty", Model::Fault(Fault::Empty)),
            ("fault-huge", Model::Huge),
            ("map", Model::Packed(Mischief::None)),
            ("map-unruly", Model::Packed(Mischief::Unruly)),
            ("map-other", Model::Prose),
            ("gpt-99", Model::Prose),
            ("", Model::Prose),
        ] {
            assert_eq!(Model::named(name, None), model, "{name}");
        }
        let biased = Persona { bias: Some(0.1), ..Persona::default() };
        assert_eq!(Model::named("critic", Some(&biased)), Model::Judge);
        assert_eq!(Model::named("echo", Some(&biased)), Model::Echo);
        let noisy = Persona { noise: Some(0.1), ..Persona::default() };
        assert_eq!(Model::named("critic", Some(&noisy)), Model::Judge);
    }
}
