//! Behaviour of a model by its name and definition.

use crate::request::Fault;
use crate::{ModelBehaviour, SimModel};
use bakeoff_core::Request;
use std::sync::Arc;

/// Behaviour of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ModelKind<'a> {
    /// A model of this crate.
    Builtin(BuiltinModel),
    /// A model of another crate.
    Custom(&'a dyn ModelBehaviour),
}

impl<'a> ModelKind<'a> {
    /// Returns the behaviour of a model: a custom one with this name, a built-in one with this name, a
    /// custom one for this definition, or generated sentences.
    pub(crate) fn resolve(
        name: &str,
        definition: Option<&SimModel>,
        behaviours: &'a [Arc<dyn ModelBehaviour>],
    ) -> ModelKind<'a> {
        let find = |matches: &dyn Fn(&dyn ModelBehaviour) -> bool| {
            behaviours.iter().map(Arc::as_ref).find(|behaviour| matches(*behaviour))
        };
        if let Some(custom) = find(&|behaviour| behaviour.has_name(name)) {
            return ModelKind::Custom(custom);
        }
        let custom = match (BuiltinModel::named(name), definition) {
            (BuiltinModel::Prose, Some(definition)) => {
                find(&|behaviour| behaviour.has_definition(definition))
            }
            (builtin, _) => return ModelKind::Builtin(builtin),
        };
        custom.map_or(ModelKind::Builtin(BuiltinModel::Prose), ModelKind::Custom)
    }

    /// Returns the status with which the model rejects a request for its content.
    pub(crate) fn rejection(self, name: &str, request: &Request) -> Option<u16> {
        match self {
            ModelKind::Builtin(BuiltinModel::Status(status)) => Some(status),
            ModelKind::Builtin(_) => None,
            ModelKind::Custom(behaviour) => behaviour.rejection(name, request),
        }
    }
}

/// Built-in behaviour of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum BuiltinModel {
    /// Repeats the last user message.
    Echo,
    /// Answers `ok` with this probability, else `no`.
    Pass(f64),
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
    /// Returns a few sentences.
    Prose,
}

impl BuiltinModel {
    /// Returns the behaviour for a name; every name has one.
    pub(crate) fn named(name: &str) -> BuiltinModel {
        let share = |text: &str| text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
        let status = |text: &str| {
            let is_three_digits = text.len() == 3;
            text.parse().ok().filter(|status| is_three_digits && (300..=599).contains(status))
        };
        match name {
            "echo" => return BuiltinModel::Echo,
            "tool" => return BuiltinModel::Tool,
            "slow" => return BuiltinModel::Slow,
            "fault-malformed" => return BuiltinModel::Fault(Fault::Malformed),
            "fault-truncated" => return BuiltinModel::Fault(Fault::Truncated),
            "fault-nonutf8" => return BuiltinModel::Fault(Fault::NonUtf8),
            "fault-empty" => return BuiltinModel::Fault(Fault::Empty),
            "fault-huge" => return BuiltinModel::Huge,
            _ => {}
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
        BuiltinModel::Prose
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
    use crate::{AnswerContext, ModelAnswer};

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
            ("gpt-99", BuiltinModel::Prose),
            ("", BuiltinModel::Prose),
        ] {
            assert_eq!(BuiltinModel::named(name), model, "{name}");
        }
    }

    /// Applies to the names `named` and `slow`, and to definitions with a bias.
    #[derive(Debug)]
    struct TestBehaviour;

    impl ModelBehaviour for TestBehaviour {
        fn has_name(&self, name: &str) -> bool {
            ["named", "slow"].contains(&name)
        }

        fn has_definition(&self, definition: &SimModel) -> bool {
            definition.bias.is_some()
        }

        fn rejection(&self, name: &str, _: &Request) -> Option<u16> {
            (name == "slow").then_some(418)
        }

        fn answer(&self, _: &AnswerContext<'_>) -> ModelAnswer {
            ModelAnswer::text("")
        }
    }

    #[test]
    fn custom_names_precede_builtin_names_which_precede_definitions() {
        let behaviours: [Arc<dyn ModelBehaviour>; 1] = [Arc::new(TestBehaviour)];
        let biased = SimModel { bias: Some(0.1), ..SimModel::default() };
        let plain = SimModel::default();
        for (name, definition, is_custom) in [
            ("named", None, true),
            ("slow", None, true),
            ("echo", None, false),
            ("echo", Some(&biased), false),
            ("critic", Some(&biased), true),
            ("critic", Some(&plain), false),
            ("critic", None, false),
        ] {
            let kind = ModelKind::resolve(name, definition, &behaviours);
            assert_eq!(matches!(kind, ModelKind::Custom(_)), is_custom, "{name} {definition:?}");
        }
        let request = Request::default();
        let rejection =
            |name| ModelKind::resolve(name, None, &behaviours).rejection(name, &request);
        assert_eq!([rejection("slow"), rejection("fault-401")], [Some(418), Some(401)]);
        assert_eq!(rejection("named"), None);
    }
}
