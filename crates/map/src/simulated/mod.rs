//! Simulated models that answer the prompts of this crate: `sim/map` and variants with reply faults.

mod fault;
mod item;
mod reply;

use bakeoff_core::Request;
use bakeoff_sim::{AnswerContext, ModelAnswer, ModelBehaviour, first_user_text};
use fault::ReplyFault;
use std::sync::Arc;

/// Returns the simulated models `map`, which answers every item, and `map-<fault>`, whose replies have
/// faults: `reorder`, `drop`, `duplicate`, `rename`, `truncate`, `wrap`, `mix`, `think`, `stubborn`, `plain`,
/// `picky` or `unruly`.
pub fn simulated_models() -> Arc<dyn ModelBehaviour> {
    Arc::new(MapModels)
}

#[derive(Debug)]
struct MapModels;

impl ModelBehaviour for MapModels {
    fn has_name(&self, name: &str) -> bool {
        ReplyFault::from_name(name).is_some()
    }

    fn rejection(&self, name: &str, request: &Request) -> Option<u16> {
        let is_rejected = match ReplyFault::from_name(name)? {
            ReplyFault::Plain => request.output.is_some(),
            ReplyFault::Picky => first_user_text(request).contains("REFUSE"),
            _ => false,
        };
        is_rejected.then_some(400)
    }

    fn answer(&self, context: &AnswerContext<'_>) -> ModelAnswer {
        let fault = ReplyFault::from_name(context.name()).unwrap_or(ReplyFault::None);
        let prompt = first_user_text(context.request());
        ModelAnswer::text(reply::reply(&prompt, fault, &mut context.rng("packed")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_the_fault() {
        for (name, fault) in [
            ("map", Some(ReplyFault::None)),
            ("map-unruly", Some(ReplyFault::Unruly)),
            ("map-other", None),
            ("judge", None),
        ] {
            assert_eq!(ReplyFault::from_name(name), fault, "{name}");
            assert_eq!(simulated_models().has_name(name), fault.is_some(), "{name}");
        }
    }
}
