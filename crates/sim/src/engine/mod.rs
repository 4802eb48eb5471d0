//! The provider itself: who is let through, what is answered, and when.

use crate::headers::Headers;
use crate::key::Key;
use crate::latency;
use crate::limit::{Cost, Denial, Limits, slowdown};
use crate::model::{Draft, Model, Scene, draft, error_words};
use crate::{Ask, Estimate, Latency, Outcome, Persona, Profile, Reply, Stats};
use bakeoff_core::Request;
use rand::RngExt;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How the model `slow` answers.
const SLOW: Latency = Latency::Fixed { ms: 10_000.0 };

/// Most requests whose failures are remembered; see [`State::failures`].
const MOST_FAILURES: usize = 1 << 16;

/// What an engine is made from. The default has no limits, answers at once, and knows the models
/// by their names.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Everything random follows from it.
    pub seed: u64,
    /// The provider's limits and habits.
    pub profile: Option<Profile>,
    /// Models with a character of their own, by name without the prefix `sim/`.
    pub models: BTreeMap<String, Persona>,
    /// How long all answers take, except those of a persona with its own latency.
    pub latency: Option<Latency>,
}

/// A model provider that does not exist. Share it in an `Arc`.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    profile: Profile,
    headers: Headers,
    state: Mutex<State>,
    /// Time from 1970 to the engine's start.
    epoch: OnceLock<Duration>,
}

#[derive(Debug)]
struct State {
    now: Duration,
    limits: Limits,
    stats: Stats,
    /// How often each request to a flaky model has failed since it last succeeded. The draw
    /// depends on it, so that a retry is a new chance and a run is still the same each time.
    failures: HashMap<u64, u32>,
}

impl Engine {
    /// An engine at its start.
    pub fn new(config: Config) -> Engine {
        let profile = config.profile.clone().unwrap_or_default();
        let headers =
            Headers { style: profile.headers, hint: profile.retry_after, seed: config.seed };
        let state = State {
            now: Duration::ZERO,
            limits: Limits::new(&profile),
            stats: Stats::default(),
            failures: HashMap::new(),
        };
        Engine { config, profile, headers, state: Mutex::new(state), epoch: OnceLock::new() }
    }

    /// Says when the engine's start was, as time since 1970, for headers with dates. The first
    /// one to say so counts; until then the start is 1970 itself, as virtual time likes it.
    pub fn set_epoch(&self, since_1970: Duration) {
        // A second server on the same engine has to live with the first one's epoch.
        let _ = self.epoch.set(since_1970);
    }

    /// What comes back for a request that arrives now.
    pub fn ask(&self, ask: &Ask<'_>) -> Reply {
        let request = ask.request;
        let name = request.model.strip_prefix("sim/").unwrap_or(&request.model);
        let persona = self.config.models.get(name);
        let model = Model::named(name, persona);

        // Most requests to a provider that is full are rejected without a look at what they say.
        {
            let mut state = self.arrive(ask.now);
            state.stats.requests += 1;
            if let Some(status) = model.refusal(request) {
                let (code, message) = error_words(status);
                return self.refuse(&mut state, status, code, message.into(), Vec::new());
            }
            if let Err(denial) = state.limits.check(state.now, None) {
                return self.deny(&mut state, denial, name);
            }
        }

        let key = Key::new(self.config.seed, name, request, ask.trial, ask.ordinal);
        let (draft, cost) = self.draft(model, name, request, key);
        let profile = &self.profile;

        let mut state = self.arrive(ask.now);
        if let Err(denial) = state.limits.check(state.now, Some(cost)) {
            return self.deny(&mut state, denial, name);
        }
        if let Some(status) = self.failure(&mut state, model, key) {
            if profile.failures_charge {
                state.limits.charge_failure();
            }
            let (code, message) = error_words(status);
            return self.refuse(&mut state, status, code, message.into(), Vec::new());
        }
        state.limits.admit(cost);
        let delay = self.delay(&state, model, persona, key);
        state.depart(delay);
        state.stats.peak_in_flight =
            state.stats.peak_in_flight.max(state.limits.flight.count().max(1));
        let admitted = state.stats.answered + state.stats.broken + 1;
        let headers = self.headers.levels(&state.limits, admitted, self.since_1970(state.now));
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
        Reply { delay, headers, outcome }
    }

    /// What the answer to a request takes and costs when nobody else asks and nothing is limited:
    /// for working out the best that anybody could do.
    pub fn estimate(&self, request: &Request, trial: u32, ordinal: u32) -> Estimate {
        let name = request.model.strip_prefix("sim/").unwrap_or(&request.model);
        let persona = self.config.models.get(name);
        let model = Model::named(name, persona);
        let key = Key::new(self.config.seed, name, request, trial, ordinal);
        let (_, Cost { input, output }) = self.draft(model, name, request, key);
        Estimate { latency: self.latency(model, persona, key), input, output }
    }

    fn draft(&self, model: Model, name: &str, request: &Request, key: Key) -> (Draft, Cost) {
        let persona = self.config.models.get(name);
        let (input, output) = (self.profile.input_tokens, self.profile.output_tokens);
        let draft = draft(
            model,
            &Scene {
                name,
                persona,
                request,
                key,
                input_tokens: persona.and_then(|p| p.input_tokens).or(input),
                output_tokens: persona.and_then(|p| p.output_tokens).or(output),
            },
        );
        let cost = match &draft {
            Draft::Answer(response) => {
                Cost { input: response.usage.prompt(), output: response.usage.output }
            }
            Draft::Broken(_) => Cost { input: 1, output: 1 },
        };
        (draft, cost)
    }

    /// What was done so far; in flight is what was when somebody last asked.
    pub fn stats(&self) -> Stats {
        self.stats_at(Duration::ZERO)
    }

    /// What was done so far, and what is in flight now.
    pub fn stats_at(&self, now: Duration) -> Stats {
        let state = self.arrive(now);
        Stats { in_flight: state.limits.flight.count(), ..state.stats.clone() }
    }

    /// Names of models to show to people who ask; every other name is a model as well.
    pub fn model_names(&self) -> Vec<String> {
        let ready =
            ["echo", "pass-0.5", "judge", "tool", "slow", "flaky-0.1", "prose"].map(String::from);
        let own = self.config.models.keys().cloned();
        let ready = ready.into_iter().filter(|name| !self.config.models.contains_key(name));
        ready.chain(own).map(|name| format!("sim/{name}")).collect()
    }

    /// The state at this time. A broken lock is only a thread that stopped in the middle of
    /// counting, so the others go on.
    fn arrive(&self, now: Duration) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Threads read their clock before they wait for the lock.
        let now = state.now.max(now);
        state.now = now;
        state.limits.advance(now);
        state
    }

    fn deny(&self, state: &mut State, denial: Denial, name: &str) -> Reply {
        let since_1970 = self.since_1970(state.now);
        let mut headers = Vec::new();
        let (status, code, message) = match denial {
            Denial::Outage { status } => {
                let (code, message) = error_words(status);
                (status, code, message.to_owned())
            }
            Denial::Quota => {
                let message = "You exceeded your current quota, please check your plan.";
                (429, "insufficient_quota", message.to_owned())
            }
            Denial::Limited { what, .. } => {
                if self.profile.failures_charge {
                    state.limits.charge_failure();
                }
                let admitted = state.stats.answered + state.stats.broken;
                headers = self.headers.levels(&state.limits, admitted, since_1970);
                headers.extend(self.headers.wait(denial, since_1970));
                (429, "rate_limit_exceeded", format!("Rate limit reached for {name} on {what}."))
            }
        };
        self.refuse(state, status, code, message, headers)
    }

    fn refuse(
        &self,
        state: &mut State,
        status: u16,
        code: &'static str,
        message: String,
        headers: Vec<(String, String)>,
    ) -> Reply {
        *state.stats.refused.entry(status).or_default() += 1;
        let outcome = Outcome::Refused { status, code, message };
        Reply { delay: latency::delay(self.profile.reject_ms / 1e3), headers, outcome }
    }

    /// The status of a transient failure, if there is one.
    fn failure(&self, state: &mut State, model: Model, key: Key) -> Option<u16> {
        if let Model::Flaky(share) = model {
            let failed = state.failures.get(&key.short()).copied().unwrap_or(0);
            let mut rng = key.rng(&format!("flaky {failed}"));
            if rng.random::<f64>() < share {
                if state.failures.len() >= MOST_FAILURES {
                    state.failures.clear();
                }
                state.failures.insert(key.short(), failed.saturating_add(1));
                return Some(if rng.random() { 500 } else { 503 });
            }
            state.failures.remove(&key.short());
        }
        if self.profile.error_rate > 0.0 {
            let mut rng = Key::event(self.config.seed, state.stats.requests).rng("error");
            return (rng.random::<f64>() < self.profile.error_rate).then_some(500);
        }
        None
    }

    /// How long this answer takes, given what is in flight before it.
    fn delay(&self, state: &State, model: Model, persona: Option<&Persona>, key: Key) -> Duration {
        let delay = self.latency(model, persona, key);
        match self.profile.knee {
            Some(knee) => latency::delay(
                delay.as_secs_f64() * slowdown(knee, state.limits.flight.count() + 1),
            ),
            None => delay,
        }
    }

    /// How long this answer takes when nobody else asks.
    fn latency(&self, model: Model, persona: Option<&Persona>, key: Key) -> Duration {
        let own = persona.and_then(|persona| persona.latency).or(self.config.latency);
        let latency = match (own, model) {
            (Some(latency), _) => Some(latency),
            (None, Model::Slow) => Some(SLOW),
            (None, _) => self.profile.latency,
        };
        latency.map_or(Duration::ZERO, |latency| latency.sample(&mut key.rng("latency")))
    }

    fn since_1970(&self, now: Duration) -> Duration {
        self.epoch.get().copied().unwrap_or_default().saturating_add(now)
    }
}

impl State {
    /// Puts an admitted request in flight.
    fn depart(&mut self, delay: Duration) {
        if !delay.is_zero() {
            self.limits.flight.add(self.now.saturating_add(delay));
        }
    }
}

#[cfg(test)]
mod tests;
