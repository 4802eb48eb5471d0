//! `bakeoff probe`: how much of a model can be used?

mod shown;

use crate::arguments::ProbeArguments;
use crate::printer::{Printer, chain};
use crate::{problems, settings};
use bakeoff_core::{ErrorKind, ExitCode, NanoDollars, Redactor};
use bakeoff_llm::probe::{ProbeConfig, ProbeReport, probe};
use bakeoff_llm::{CallError, Client, ClientConfig, Model, ModelConfig, ModelError, PROVIDERS};
use std::io::{BufRead, IsTerminal};

pub(crate) fn run(arguments: &ProbeArguments, printer: &Printer) -> ExitCode {
    settings::raise_file_limit();
    let model = match model(arguments, printer) {
        Ok(model) => model,
        Err(code) => return code,
    };
    let usual = ProbeConfig::default();
    let config = ProbeConfig {
        max_requests: arguments.max_requests,
        max_connections: arguments.max_connections,
        max_time: arguments.max_seconds,
        max_cost: arguments.max_cost,
        prompt: arguments.prompt.clone().unwrap_or(usual.prompt),
        max_tokens: arguments.max_tokens,
        ..usual
    };
    if let Err(code) = may_spend(&model, &config, arguments, printer) {
        return code;
    }
    let mut redactor = Redactor::default();
    model.add_secrets(&mut redactor);
    let client = Client::new(ClientConfig { redactor, ..ClientConfig::default() });
    let mut on_level = |level: &bakeoff_llm::probe::Level| {
        if !arguments.json {
            printer.talk(shown::progress(level));
        }
    };
    let work = async {
        tokio::select! {
            report = probe(&client, &model, &config, &mut on_level) => Some(report),
            Ok(()) = tokio::signal::ctrl_c() => None,
        }
    };
    match super::block_on(printer, work) {
        Ok(Some(Ok(report))) => {
            show(&model, &report, arguments.json, printer);
            match report.advice {
                Some(_) => ExitCode::Passed,
                None => ExitCode::Inconclusive,
            }
        }
        Ok(Some(Err(error))) => refused(&error, printer),
        Ok(None) => ExitCode::Interrupted,
        Err(code) => code,
    }
}

/// The model that was named, with its key.
fn model(arguments: &ProbeArguments, printer: &Printer) -> Result<Model, ExitCode> {
    let usage = |message: String, hint: Option<&str>| {
        printer.error(message, hint);
        ExitCode::Usage
    };
    let named = match &arguments.suite {
        Some(suite) => match bakeoff_eval::suite_models(suite) {
            Ok(mut models) => models.remove(&arguments.model),
            Err(found) => {
                problems::show(&found, printer);
                return Err(ExitCode::Usage);
            }
        },
        None => None,
    };
    let config = match (named, arguments.model.split_once('/')) {
        (Some(config), _) => config,
        (None, Some((provider, model))) if !model.is_empty() => ModelConfig::named(provider, model),
        (None, _) => {
            let hint = "write provider/model such as `openai/gpt-4o-mini`, or `--suite FILE` for a \
                        table under its [models]";
            return Err(usage(format!("there is no model `{}`", arguments.model), Some(hint)));
        }
    };
    let base_url = arguments.base_url.clone().or(config.base_url);
    Model::resolve(&ModelConfig { base_url, ..config }, &settings::variable).map_err(|error| {
        let hint = match &error {
            ModelError::MissingKey(name) => Some(format!("`export {name}=…`")),
            ModelError::UnknownProvider(_) => {
                let known: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
                Some(format!("known here: {}", known.join(", ")))
            }
            ModelError::NoAddress(_) => Some("`--base-url URL` names the server".to_owned()),
            _ => None,
        };
        usage(chain(&error), hint.as_deref())
    })
}

/// Says what the probe may spend, and asks. What is simulated costs nothing.
fn may_spend(
    model: &Model,
    config: &ProbeConfig,
    arguments: &ProbeArguments,
    printer: &Printer,
) -> Result<(), ExitCode> {
    let price = model.cost(&config.usage());
    if arguments.max_cost.is_some() && price.is_none() {
        printer.error(
            format!("nobody knows the price of {}, so --max-cost cannot be kept", model.name()),
            Some("give `prices` in a suite and use `--suite`, or bound it by `--max-requests`"),
        );
        return Err(ExitCode::Usage);
    }
    if model.is_simulated() {
        return Ok(());
    }
    let most = price.map(|price| {
        let all = NanoDollars(price.0.saturating_mul(config.max_requests.into()));
        config.max_cost.map_or(all, |bound| if bound.0 < all.0 { bound } else { all })
    });
    let cost = most.map_or("price unknown".to_owned(), |most| format!("at most {most}"));
    let usage = config.usage();
    printer.talk(format!(
        "up to {} requests to {}, each about {} tokens in and at most {} out: {cost}",
        config.max_requests,
        model.name(),
        usage.input,
        usage.output,
    ));
    if arguments.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        printer.error(
            "a probe spends money, and there is nobody to ask",
            Some("`--yes` spends without asking"),
        );
        return Err(ExitCode::Usage);
    }
    printer.talk("go on? [y/N]");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if read.is_ok() && is_yes { Ok(()) } else { Err(ExitCode::Usage) }
}

fn show(model: &Model, report: &ProbeReport, json: bool, printer: &Printer) {
    if json {
        printer.json(&shown::json(model.name(), report));
    } else {
        shown::lines(model.name(), report).iter().for_each(|line| printer.data(line));
    }
}

fn refused(error: &CallError, printer: &Printer) -> ExitCode {
    let hint = match error.failure.kind {
        ErrorKind::Auth => Some("check the key, and that it may use this model"),
        ErrorKind::InvalidRequest => Some("check the model's name and the address"),
        _ => None,
    };
    printer.error(chain(error), hint);
    ExitCode::Usage
}
