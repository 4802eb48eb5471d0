//! The simulated provider: admission, answers and latency.

use crate::headers::HeaderSettings;
use crate::key::SeedKey;
use crate::latency;
use crate::limit::{Denial, InFlight, ProviderLimits, TokenCost, slowdown};
use crate::model::{AnswerContext, BuiltinModel, Draft, ModelKind, draft, error_for_status};
use crate::profile::DrawnFault;
use crate::{
    BatchSlot, Fault, Latency, ModelBehaviour, Outcome, Profile, Reply, RequestEstimate, SimModel,
    SimRequest, Stats,
};
use bakeoff_core::Request;
use rand::RngExt;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Latency of the model `slow`.
const SLOW: Latency = Latency::Fixed { ms: 10_000.0 };

/// Maximum number of entries in [`EngineState::failures`].
const MAX_FAILURES: usize = 1 << 16;

/// Configuration of an engine. The default has no limits and no latency, and models behave as their
/// names say.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Config {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Limits, outages and latency of the provider.
    pub profile: Option<Profile>,
    /// Models defined by a suite, by name without the prefix `sim/`.
    pub models: BTreeMap<String, SimModel>,
    /// Models of other crates. The engine consults them in order, before its built-in models.
    pub behaviours: Vec<Arc<dyn ModelBehaviour>>,
    /// Latency of all answers, except those of models that define their own.
    pub latency: Option<Latency>,
}

impl Config {
    /// Sets the seed of all random numbers.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Config {
        self.seed = seed;
        self
    }

    /// Sets the limits, outages and latency of the provider.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Config {
        self.profile = Some(profile);
        self
    }

    /// Sets models defined by name, without the prefix `sim/`.
    #[must_use]
    pub fn models(mut self, models: BTreeMap<String, SimModel>) -> Config {
        self.models = models;
        self
    }

    /// Sets models of other crates.
    #[must_use]
    pub fn behaviours(mut self, behaviours: Vec<Arc<dyn ModelBehaviour>>) -> Config {
        self.behaviours = behaviours;
        self
    }

    /// Sets the latency of all answers.
    #[must_use]
    pub fn latency(mut self, latency: Latency) -> Config {
        self.latency = Some(latency);
        self
    }
}

/// Simulated model provider. Share it in an `Arc`.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    profile: Profile,
    headers: HeaderSettings,
    state: Mutex<EngineState>,
    /// Time from 1970 to the engine's start.
    epoch: OnceLock<Duration>,
}

#[derive(Debug)]
struct EngineState {
    now: Duration,
    limits: ProviderLimits,
    stats: Stats,
    /// Number of failures of each request to a flaky model since its last success. The random draw
    /// depends on it, so a retry is an independent draw and runs stay reproducible.
    failures: HashMap<u64, u32>,
}

impl Engine {
    /// Creates an engine at time zero.
    pub fn new(config: Config) -> Engine {
        let profile = config.profile.clone().unwrap_or_default();
        let headers =
            HeaderSettings { style: profile.headers, hint: profile.retry_after, seed: config.seed };
        let state = EngineState {
            now: Duration::ZERO,
            limits: ProviderLimits::new(&profile),
            stats: Stats::default(),
            failures: HashMap::new(),
        };
        Engine { config, profile, headers, state: Mutex::new(state), epoch: OnceLock::new() }
    }

    /// Sets the engine's start, as time since 1970, for headers with dates. The first call wins.
    /// Without a call the start is 1970, which suits virtual time.
    pub fn set_epoch(&self, since_1970: Duration) {
        // A second server on the same engine keeps the epoch of the first one.
        let _ = self.epoch.set(since_1970);
    }

    /// Returns the time to set up a connection, for servers.
    #[cfg(feature = "server")]
    pub(crate) fn connect_time(&self) -> Duration {
        latency::delay(self.profile.connect_ms / 1e3)
    }

    /// Returns the reply to a request.
    pub fn respond(&self, arrival: &SimRequest<'_>) -> Reply {
        let request = arrival.request;
        let name = request.model.strip_prefix("sim/").unwrap_or(&request.model);
        let definition = self.config.models.get(name);
        let model = ModelKind::resolve(name, definition, &self.config.behaviours);
        let rejection = model.rejection(name, request);

        // Fast path: under load most requests are rejected before an answer is generated.
        let number = {
            let mut state = self.lock_at(arrival.now);
            state.stats.requests += 1;
            if let Some(status) = rejection {
                let (code, message) = error_for_status(status);
                return self.refuse(&mut state, status, code, message.into(), Vec::new());
            }
            let admission = state.limits.check(state.now, None);
            if let Err(denial) = admission.and_then(|()| self.random_rejection(&state)) {
                return self.deny(&mut state, denial, name);
            }
            state.stats.requests
        };

        let key = SeedKey::new(self.config.seed, name, request, arrival.trial, arrival.ordinal);
        let (draft, cost) = self.draft(model, name, request, key);
        let profile = &self.profile;
        let output = profile.charged_output_tokens.unwrap_or(cost.output);
        let charge = TokenCost { output, ..cost };

        let mut state = self.lock_at(arrival.now);
        if let Err(denial) = state.limits.check(state.now, Some(charge)) {
            return self.deny(&mut state, denial, name);
        }
        let fault = self.fault(number);
        let failure = self.failure(&mut state, model, key);
        if let Some(status) = failure.or((fault == Some(DrawnFault::Status500)).then_some(500)) {
            if profile.failures_charge {
                state.limits.charge_failure();
            }
            let (code, message) = error_for_status(status);
            return self.refuse(&mut state, status, code, message.into(), Vec::new());
        }
        state.limits.admit(charge);
        let latency = self.latency(model, definition, key);
        let now = state.now;
        let (delay, slot) = self.start_flight(&mut state.limits.flight, latency, now);
        state.stats.peak_in_flight =
            state.stats.peak_in_flight.max(state.limits.flight.count().max(1));
        let admitted = state.stats.answered + state.stats.broken + 1;
        let headers = self.headers.levels(&state.limits, admitted, self.since_1970(state.now));
        let answer_status = if fault == Some(DrawnFault::Status201) { 201 } else { 200 };
        let draft = match fault {
            Some(DrawnFault::Broken(fault)) => Draft::Broken(fault),
            _ => draft,
        };
        // The provider has processed a stalled request; only its response is lost.
        let delay = match draft {
            Draft::Broken(Fault::Stall) => latency::MAX_DELAY,
            _ => delay,
        };
        let outcome = match draft {
            Draft::Answer(response) => {
                state.stats.answered += 1;
                state.stats.input_tokens += cost.input;
                state.stats.output_tokens += cost.output;
                Outcome::Answer(response)
            }
            Draft::Broken(fault) => {
                state.stats.broken += 1;
                Outcome::Broken(fault)
            }
        };
        Reply { delay, slot, headers, answer_status, outcome }
    }

    /// Returns the time until the reply of a batched request is complete if no other request arrives;
    /// `None` if it is complete.
    pub fn time_left(&self, slot: BatchSlot, now: Duration) -> Option<Duration> {
        self.lock_at(now).limits.flight.time_left(slot)
    }

    /// Returns latency and token counts of a request without load and limits. Benchmarks compute the
    /// optimum from it.
    pub fn estimate(&self, request: &Request, trial: u32, ordinal: u32) -> RequestEstimate {
        let name = request.model.strip_prefix("sim/").unwrap_or(&request.model);
        let definition = self.config.models.get(name);
        let model = ModelKind::resolve(name, definition, &self.config.behaviours);
        let key = SeedKey::new(self.config.seed, name, request, trial, ordinal);
        let (_, TokenCost { input, output }) = self.draft(model, name, request, key);
        RequestEstimate { latency: self.latency(model, definition, key), input, output }
    }

    fn draft(
        &self,
        model: ModelKind<'_>,
        name: &str,
        request: &Request,
        key: SeedKey,
    ) -> (Draft, TokenCost) {
        let definition = self.config.models.get(name);
        let (input, output) = (self.profile.input_tokens, self.profile.output_tokens);
        let draft = draft(
            model,
            &AnswerContext {
                name,
                definition,
                request,
                key,
                input_tokens: definition.and_then(|model| model.input_tokens).or(input),
                output_tokens: definition.and_then(|model| model.output_tokens).or(output),
            },
        );
        let cost = match &draft {
            Draft::Answer(response) => {
                TokenCost { input: response.usage.prompt(), output: response.usage.output }
            }
            Draft::Broken(_) => TokenCost { input: 1, output: 1 },
        };
        (draft, cost)
    }

    /// Returns the counts so far; `in_flight` is as of the last request.
    pub fn stats(&self) -> Stats {
        self.stats_at(Duration::ZERO)
    }

    /// Returns the counts so far, with `in_flight` as of `now`.
    pub fn stats_at(&self, now: Duration) -> Stats {
        let state = self.lock_at(now);
        Stats { in_flight: state.limits.flight.count(), ..state.stats.clone() }
    }

    /// Returns the model names to list. Every other name is valid as well.
    pub fn model_names(&self) -> Vec<String> {
        let builtin = ["echo", "pass-0.5", "tool", "slow", "flaky-0.1", "prose"];
        let custom = self.config.behaviours.iter().flat_map(|behaviour| behaviour.listed_names());
        let defined = self.config.models.keys().cloned();
        let named = builtin.iter().chain(custom).map(|name| (*name).to_owned());
        let named = named.filter(|name| !self.config.models.contains_key(name));
        named.chain(defined).map(|name| format!("sim/{name}")).collect()
    }

    /// Locks the state and advances it to `now`. A poisoned lock only means that a thread panicked
    /// while it counted, so the state stays usable.
    fn lock_at(&self, now: Duration) -> MutexGuard<'_, EngineState> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads read their clock before they wait for the lock, so times can arrive out of order.
        let now = state.now.max(now);
        state.now = now;
        state.limits.advance(now);
        state
    }

    fn deny(&self, state: &mut EngineState, denial: Denial, name: &str) -> Reply {
        let since_1970 = self.since_1970(state.now);
        let mut headers = Vec::new();
        let (status, code, message) = match denial {
            Denial::Outage { status } => {
                let (code, message) = error_for_status(status);
                (status, code, message.to_owned())
            }
            Denial::Quota => {
                let message = "You exceeded your current quota, please check your plan.";
                (429, "insufficient_quota", message.to_owned())
            }
            Denial::Limited { quantity, .. } => {
                if self.profile.failures_charge {
                    state.limits.charge_failure();
                }
                let admitted = state.stats.answered + state.stats.broken;
                headers = self.headers.levels(&state.limits, admitted, since_1970);
                headers.extend(self.headers.retry(denial, since_1970));
                match self.profile.reject_status {
                    None | Some(429) => {
                        let message = format!("Rate limit reached for {name} on {quantity}.");
                        (429, "rate_limit_exceeded", message)
                    }
                    Some(status) => {
                        let (code, message) = error_for_status(status);
                        (status, code, message.to_owned())
                    }
                }
            }
        };
        self.refuse(state, status, code, message, headers)
    }

    fn refuse(
        &self,
        state: &mut EngineState,
        status: u16,
        code: &'static str,
        message: String,
        headers: Vec<(String, String)>,
    ) -> Reply {
        *state.stats.refused.entry(status).or_default() += 1;
        let outcome = Outcome::Refused { status, code, message };
        let delay = latency::delay(self.profile.reject_ms / 1e3);
        Reply { delay, slot: None, headers, answer_status: 200, outcome }
    }

    /// Draws the fault of a request by its number.
    fn fault(&self, number: u64) -> Option<DrawnFault> {
        if self.profile.faults.total() == 0.0 {
            return None;
        }
        let mut rng = SeedKey::event(self.config.seed, number).rng("fault");
        self.profile.faults.at(rng.random())
    }

    /// Rejects the share of requests that the profile rejects irrespective of load.
    fn random_rejection(&self, state: &EngineState) -> Result<(), Denial> {
        if self.profile.reject_rate > 0.0 {
            let mut rng = SeedKey::event(self.config.seed, state.stats.requests).rng("reject");
            if rng.random::<f64>() < self.profile.reject_rate {
                let (wait, full) = (Duration::ZERO, Duration::ZERO);
                return Err(Denial::Limited { quantity: "requests", wait, full });
            }
        }
        Ok(())
    }

    /// Returns the status of a transient failure, if one occurs.
    fn failure(&self, state: &mut EngineState, model: ModelKind<'_>, key: SeedKey) -> Option<u16> {
        if let ModelKind::Builtin(BuiltinModel::Flaky(share)) = model {
            let failed = state.failures.get(&key.short()).copied().unwrap_or(0);
            let mut rng = key.rng(&format!("flaky {failed}"));
            if rng.random::<f64>() < share {
                if state.failures.len() >= MAX_FAILURES {
                    state.failures.clear();
                }
                state.failures.insert(key.short(), failed.saturating_add(1));
                return Some(if rng.random() { 500 } else { 503 });
            }
            state.failures.remove(&key.short());
        }
        if self.profile.error_rate > 0.0 {
            let mut rng = SeedKey::event(self.config.seed, state.stats.requests).rng("error");
            return (rng.random::<f64>() < self.profile.error_rate).then_some(500);
        }
        None
    }

    /// Records an admitted request as in flight. Returns the delay of its answer under the current load.
    fn start_flight(
        &self,
        flight: &mut InFlight,
        latency: Duration,
        now: Duration,
    ) -> (Duration, Option<BatchSlot>) {
        if latency.is_zero() {
            return (latency, None);
        }
        if let Some(slot) = flight.join(latency) {
            return (flight.time_left(slot).unwrap_or_default(), Some(slot));
        }
        let factor = self.profile.knee.map_or(1.0, |knee| slowdown(knee, flight.count() + 1));
        let delay = latency::delay(latency.as_secs_f64() * factor);
        flight.add(now.saturating_add(delay));
        (delay, None)
    }

    /// Returns the latency of an answer without load.
    fn latency(
        &self,
        model: ModelKind<'_>,
        definition: Option<&SimModel>,
        key: SeedKey,
    ) -> Duration {
        let configured =
            definition.and_then(|definition| definition.latency).or(self.config.latency);
        let latency = match (configured, model) {
            (Some(latency), _) => Some(latency),
            (None, ModelKind::Builtin(BuiltinModel::Slow)) => Some(SLOW),
            (None, _) => self.profile.latency.or_else(|| {
                self.profile.batching.map(|batching| Latency::Fixed { ms: batching.base_ms })
            }),
        };
        latency.map_or(Duration::ZERO, |latency| latency.sample(&mut key.rng("latency")))
    }

    fn since_1970(&self, now: Duration) -> Duration {
        self.epoch.get().copied().unwrap_or_default().saturating_add(now)
    }
}

#[cfg(test)]
mod tests;
