//! Targets in `run.json`.

use bakeoff_agent::{McpEndpoint, McpServer};
use bakeoff_suite::{ChainStep, Target, TargetKind, describe_limits};
use serde_json::json;
use std::collections::BTreeMap;

/// Describes a target for `run.json`, without secrets.
pub(crate) fn describe_target(target: &Target) -> serde_json::Value {
    let mut value = json!({
        "name": target.name,
        "gate": target.gate,
        "prompt": target.prompt.source(),
    });
    if !target.roles.is_empty() {
        let roles = target.roles.iter().map(|(role, model)| (role.as_str(), model.as_str()));
        value["roles"] = json!(roles.collect::<BTreeMap<_, _>>());
    }
    if let Some(base) = &target.sample {
        value["combination_of"] = json!(base);
    }
    match &target.kind {
        TargetKind::Chain(chain) => {
            value["chain"] = chain.steps.iter().map(|step| describe_step(step)).collect()
        }
        TargetKind::Model(model) => {
            value["model"] = json!(model.label);
            value["system"] = json!(model.system.as_ref().map(|system| system.source()));
            value["limits"] = describe_limits(&model.model.limits());
            if let Some(agent) = &model.agent {
                let server = |server: &McpServer| {
                    let mut value = json!({ "name": server.name, "tools": server.tools });
                    match &server.endpoint {
                        McpEndpoint::Program { command, .. } => {
                            let words = command.iter().map(|word| word.to_string_lossy());
                            value["command"] = json!(words.collect::<Vec<_>>());
                        }
                        _ => value["url"] = json!(server.address()),
                    }
                    value
                };
                value["tools"] = json!(agent.tools);
                value["mcp"] = agent.mcp.iter().map(server).collect();
                value["max_turns"] = json!(agent.max_turns);
            }
        }
        TargetKind::Program(program) => {
            let command: Vec<_> =
                program.command.iter().map(|argument| argument.to_string_lossy()).collect();
            value["command"] = json!(command);
            if let Some((agent, model)) = &program.agent {
                value["agent"] = json!(agent.name());
                value["model"] = json!(model);
            }
        }
        TargetKind::Service(service) => value["url"] = json!(service.service.address()),
    }
    value
}

fn describe_step(step: &ChainStep) -> serde_json::Value {
    json!({
        "name": step.name,
        "role": step.role,
        "model": step.model.label,
        "system": step.model.system.as_ref().map(|system| system.source()),
        "prompt": step.prompt.source(),
        "limits": describe_limits(&step.model.model.limits()),
    })
}
