//! The whole probe against the simulated provider, in virtual time.

use super::*;
use crate::{ClientConfig, ModelConfig};
use bakeoff_sim::Profile;

/// Creates a client whose simulated models have this profile.
fn client(profile: &str) -> Client {
    client_with_seed(profile, 0)
}

fn client_with_seed(profile: &str, seed: u64) -> Client {
    let text = format!("[[profile]]\n{profile}\n");
    let profile = Profile::parse_file_text(&text).unwrap().remove(0);
    let simulator = bakeoff_sim::Config::default().profile(profile).seed(seed);
    Client::new(ClientConfig::default().simulator(simulator))
}

fn model() -> Model {
    Model::resolve(&ModelConfig::named("sim", "echo"), &|_| None).unwrap()
}

async fn run_probe_with(profile: &str, config: ProbeConfig) -> ProbeReport {
    probe(&client(profile), &model(), &config, &mut |_| {}).await.unwrap()
}

async fn run_probe(profile: &str) -> ProbeReport {
    run_probe_with(profile, ProbeConfig::default()).await
}

fn is_near(found: f64, truth: f64) -> bool {
    (found / truth - 1.0).abs() <= 0.1
}

/// Returns how many calls are rejected with the recommended settings.
async fn rejections(profile: &str, report: &ProbeReport, calls: u64) -> u64 {
    let Some(recommendation) = report.recommendation else { return 0 };
    let client = client(profile);
    let model = model().with_limits(recommendation.limits());
    let config = ProbeConfig::default();
    let contexts: Vec<CallContext<'_>> = (0..calls).map(|_| CallContext::default()).collect();
    let mut all: FuturesUnordered<_> = (0..calls)
        .zip(&contexts)
        .map(|(number, context)| client.call(&model, config.request(number), context))
        .collect();
    while let Some(call) = all.next().await {
        call.unwrap();
    }
    client.simulator.stats().refused.get(&429).copied().unwrap_or(0)
}

/// Checks that the probe finds caps with a latency, and that the recommended settings are not rejected.
async fn assert_caps_are_found(latency: &str) {
    let mut wrong = Vec::new();
    for cap in [1, 2, 3, 5, 12, 20, 40, 70, 100, 200] {
        for reject in [0, 10] {
            let profile = format!("latency = {latency}\nconcurrency = {cap}\nreject_ms = {reject}");
            let report = run_probe(&profile).await;
            let rejected = rejections(&profile, &report, 4 * cap + 20).await;
            let is_right = matches!(report.limit, LimitFinding::Cap { connections } if is_near(connections, cap as f64));
            if !is_right || rejected > 0 || !report.is_confirmed || report.stop.is_some() {
                wrong.push(format!("{profile}: {}", summary(&report, rejected)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn cap_is_found_at_300_ms() {
    assert_caps_are_found("{ kind = \"fixed\", ms = 300 }").await;
}

#[tokio::test(start_paused = true)]
async fn cap_is_found_at_20_ms() {
    assert_caps_are_found("{ kind = \"fixed\", ms = 20 }").await;
}

#[tokio::test(start_paused = true)]
async fn cap_is_found_at_varying_800_ms() {
    assert_caps_are_found("{ kind = \"lognormal\", median_ms = 800, sigma = 0.5 }").await;
}

/// Limits of the tests of rates, with their requests per second.
const RATES: [(f64, &str); 14] = [
    (5.0, "requests = { rate_per_s = 5, burst = 5 }"),
    (2.0, "requests = { rate_per_s = 2, burst = 1 }"),
    (5.0, "requests = { rate_per_s = 5, burst = 1 }"),
    (8.0, "requests = { rate_per_s = 8, burst = 1 }"),
    (5.0, "requests = { rate_per_s = 5, burst = 2 }"),
    (5.0, "requests = { rate_per_s = 5, burst = 20 }"),
    (20.0, "requests = { rate_per_s = 20, burst = 20 }"),
    (20.0, "requests = { rate_per_s = 20, burst = 20 }\nheaders = \"openai\""),
    (
        20.0,
        "requests = { rate_per_s = 20, burst = 20 }\nheaders = \"anthropic\"\nretry_after = \"ceil\"",
    ),
    (5.0, "requests = { rate_per_s = 5, burst = 5 }\nretry_after = \"exact\""),
    (50.0, "requests = { rate_per_s = 50, burst = 5 }"),
    (5.0, "window = { requests = 50, seconds = 10 }"),
    (5.0, "window = { requests = 50, seconds = 10, phase_s = 6 }\nretry_after = \"ceil\""),
    (10.0, "window = { requests = 10, seconds = 1 }"),
];

/// Checks that the probe finds rates with a latency, and that the recommended settings are not rejected.
async fn assert_rates_are_found(latency: &str) {
    let mut wrong = Vec::new();
    for (rate, limit) in RATES {
        let profile = format!("latency = {latency}\nreject_ms = 2\n{limit}");
        let report = run_probe(&profile).await;
        let rejected = rejections(&profile, &report, 250).await;
        let is_right =
            matches!(report.limit, LimitFinding::Rate { per_second } if is_near(per_second, rate));
        if !is_right || rejected > 0 {
            wrong.push(format!("{profile}: {}", summary(&report, rejected)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn rate_is_found_at_300_ms() {
    assert_rates_are_found("{ kind = \"fixed\", ms = 300 }").await;
}

#[tokio::test(start_paused = true)]
async fn rate_is_found_at_100_ms() {
    assert_rates_are_found("{ kind = \"fixed\", ms = 100 }").await;
}

#[tokio::test(start_paused = true)]
async fn rate_is_found_at_30_ms() {
    assert_rates_are_found("{ kind = \"fixed\", ms = 30 }").await;
}

#[tokio::test(start_paused = true)]
async fn rate_is_found_at_varying_300_ms() {
    assert_rates_are_found("{ kind = \"lognormal\", median_ms = 300, sigma = 0.3 }").await;
}

#[tokio::test(start_paused = true)]
async fn rate_is_found_at_varying_800_ms() {
    assert_rates_are_found("{ kind = \"lognormal\", median_ms = 800, sigma = 0.4 }").await;
}

#[tokio::test(start_paused = true)]
async fn rate_is_found_at_varying_2000_ms() {
    assert_rates_are_found("{ kind = \"lognormal\", median_ms = 2000, sigma = 0.5 }").await;
}

/// Summarises a report for a failure message.
fn summary(report: &ProbeReport, rejected: u64) -> String {
    let levels: Vec<String> = (report.levels.iter())
        .map(|l| format!("{} {}: {}/{}", l.purpose.as_str(), l.connections, l.accepted, l.sent))
        .collect();
    let recommendation = report.recommendation.map(|recommendation| recommendation.to_string());
    format!(
        "{:?} {recommendation:?} confirmed {} stop {:?} rejected afterwards {rejected}; {}; {:.1} s",
        report.limit,
        report.is_confirmed,
        report.stop,
        levels.join(", "),
        report.seconds
    )
}

#[tokio::test(start_paused = true)]
async fn unreached_limit_is_reported_and_headers_improve_the_recommendation() {
    let latency = "latency = { kind = \"fixed\", ms = 100 }";
    let config = ProbeConfig::default().max_connections(16);
    let report = run_probe_with(latency, config.clone()).await;
    assert_eq!(report.limit, LimitFinding::NotReached { connections: 16 });
    let line = report.recommendation.unwrap().to_string();
    assert_eq!(line, "limits = { strategy = \"fixed\", connections = 16 }");

    let minute = "requests = { rate_per_s = 10, burst = 600 }\nheaders = \"openai\"";
    let report = run_probe_with(&format!("{latency}\n{minute}"), config).await;
    let limits = report.recommendation.unwrap().limits();
    assert!((560..=580).contains(&limits.rpm.unwrap()), "{limits:?}");
    assert!(
        is_near(report.header_limits[0].per_minute().unwrap(), 600.0),
        "{:?}",
        report.header_limits
    );
}

#[tokio::test(start_paused = true)]
async fn rising_latency_without_rejections_is_a_knee() {
    let profile = "latency = { kind = \"fixed\", ms = 100 }\nknee = { k = 10 }";
    let report = run_probe(profile).await;
    let LimitFinding::Knee { connections } = report.limit else { panic!("{report:#?}") };
    assert!((7.0..=18.0).contains(&connections), "{connections}");
}

#[tokio::test(start_paused = true)]
async fn each_bound_stops_the_probe_and_is_reported() {
    let latency = "latency = { kind = \"fixed\", ms = 100 }";
    let few = run_probe_with(latency, ProbeConfig::default().max_requests(20)).await;
    assert_eq!((few.requests, few.stop), (20, Some(ProbeStop::Requests)));
    assert_eq!(few.limit, LimitFinding::NotReached { connections: 4 });

    let time = Duration::from_millis(450);
    let short = run_probe_with(latency, ProbeConfig::default().max_time(time)).await;
    assert_eq!(short.stop, Some(ProbeStop::Time));
    assert!(short.seconds < 0.7, "{}", short.seconds);

    let prices = bakeoff_core::Prices {
        input: NanoDollars(1_000_000_000),
        output: NanoDollars(1_000_000_000),
        ..bakeoff_core::Prices::default()
    };
    let config = ModelConfig::named("sim", "echo").prices(prices);
    let priced = Model::resolve(&config, &|_| None).unwrap();
    let max_cost = NanoDollars(1_000_000);
    let config = ProbeConfig::default().max_cost(max_cost);
    let report = probe(&client(latency), &priced, &config, &mut |_| {}).await.unwrap();
    assert_eq!(report.stop, Some(ProbeStop::Cost));
    assert!(report.cost.unwrap().0 > 0 && report.cost.unwrap().0 <= max_cost.0, "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn exhausted_quota_outage_and_invalid_key_end_the_probe() {
    let latency = "latency = { kind = \"fixed\", ms = 100 }";
    let quota = run_probe(&format!("{latency}\ndaily_quota = 9")).await;
    assert_eq!(quota.stop, Some(ProbeStop::Quota));
    let down = run_probe(&format!("{latency}\noutages = [{{ from_s = 1, to_s = 9000 }}]")).await;
    assert_eq!(down.stop, Some(ProbeStop::Failures), "{down:#?}");
    let client = client(latency);
    let wrong = Model::resolve(&ModelConfig::named("sim", "fault-401"), &|_| None).unwrap();
    let error = probe(&client, &wrong, &ProbeConfig::default(), &mut |_| {}).await.unwrap_err();
    assert_eq!(error.failure.kind, ErrorKind::Auth);
    assert_eq!(client.simulator.stats().requests, 1);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_respected() {
    // Each rejection asks for a minute without requests.
    let profile = "latency = { kind = \"fixed\", ms = 100 }\nretry_after = \"60s\"\n\
                   requests = { rate_per_s = 1, burst = 5 }";
    let report = run_probe(profile).await;
    assert_eq!(report.longest_wait, Some(Duration::from_secs(60)));
    let rejected: u32 = report.levels.iter().map(|level| level.rejected).sum();
    assert!(rejected <= 12, "{}", summary(&report, 0));
}

/// A provider of [`PROVIDERS`], and the limits that a probe must find.
struct Provider {
    profile: &'static str,
    rate: Option<f64>,
    cap: Option<f64>,
}

const PROVIDERS: [Provider; 17] = [
    Provider {
        profile: "latency = { kind = \"uniform\", min_ms = 1200, max_ms = 2800 }\nretry_after = \"2s\"\n\
                  requests = { rate_per_s = 8, burst = 8 }",
        rate: Some(8.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 500 }\nretry_after = \"1s\"\n\
                  requests = { rate_per_s = 5, burst = 1 }",
        rate: Some(5.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 500 }\nrequests = { rate_per_s = 2, burst = 20 }",
        rate: Some(2.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"uniform\", min_ms = 500, max_ms = 1500 }\nretry_after = \"20s\"\n\
                  concurrency = 30",
        rate: None,
        cap: Some(30.0),
    },
    Provider {
        profile: "latency = { kind = \"uniform\", min_ms = 1000, max_ms = 3000 }\nretry_after = \"1s\"\n\
                  concurrency = 8",
        rate: None,
        cap: Some(8.0),
    },
    Provider {
        profile: "latency = { kind = \"uniform\", min_ms = 500, max_ms = 1500 }\nconcurrency = 10",
        rate: None,
        cap: Some(10.0),
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 500 }\nwindow = { requests = 37, seconds = 7 }",
        rate: Some(37.0 / 7.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 500 }\nsliding_window = { requests = 60, seconds = 60 }",
        rate: Some(1.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"uniform\", min_ms = 500, max_ms = 1500 }",
        rate: None,
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 300 }\nrequests = { rate_per_s = 20, burst = 20 }\n\
                  concurrency = 10",
        rate: Some(20.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 2000 }\nrequests = { rate_per_s = 20, burst = 20 }\n\
                  concurrency = 10",
        rate: None,
        cap: Some(10.0),
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 500 }\nheaders = \"openai\"\n\
                  requests = { rate_per_s = 10, burst = 20 }",
        rate: Some(10.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 500 }\nheaders = \"wrong\"\n\
                  requests = { rate_per_s = 10, burst = 20 }",
        rate: Some(10.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 600 }\nretry_after = \"exact\"\n\
                  window = { requests = 20, seconds = 5, phase_s = 2.3 }",
        rate: Some(4.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 600 }\nretry_after = \"ceil\"\n\
                  window = { requests = 37, seconds = 7, phase_s = 0.7 }",
        rate: Some(37.0 / 7.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 600 }\nretry_after = \"ceil\"\n\
                  window = { requests = 100, seconds = 10, phase_s = 4.1 }",
        rate: Some(10.0),
        cap: None,
    },
    Provider {
        profile: "latency = { kind = \"fixed\", ms = 600 }\nretry_after = \"ceil\"\n\
                  sliding_window = { requests = 30, seconds = 10 }",
        rate: Some(3.0),
        cap: None,
    },
];

#[tokio::test(start_paused = true)]
async fn kind_and_value_of_the_limit_are_found_with_announced_waits() {
    assert_providers_are_found(|profile| profile.contains("retry_after")).await;
}

#[tokio::test(start_paused = true)]
async fn kind_and_value_of_the_limit_are_found_without_announced_waits() {
    assert_providers_are_found(|profile| !profile.contains("retry_after")).await;
}

/// Checks that the probe finds the limits of some providers.
async fn assert_providers_are_found(is_selected: fn(&str) -> bool) {
    let mut wrong = Vec::new();
    let selected = PROVIDERS.into_iter().filter(|provider| is_selected(provider.profile));
    for Provider { profile, rate, cap } in selected {
        // With a fixed latency, all seeds give the same result.
        let seeds = if profile.contains("fixed") { 1 } else { 5 };
        for seed in 0..seeds {
            let report = probe(
                &client_with_seed(profile, seed),
                &model(),
                &ProbeConfig::default(),
                &mut |_| {},
            )
            .await
            .unwrap();
            let is_right = match report.limit {
                LimitFinding::Rate { per_second } => {
                    rate.is_some_and(|rate| (per_second / rate - 1.0).abs() <= 0.15)
                }
                LimitFinding::RateAndCap { per_second, connections } => {
                    cap.is_none_or(|cap| (connections - cap).abs() <= 1.0)
                        && rate.is_some_and(|rate| (per_second / rate - 1.0).abs() <= 0.15)
                }
                LimitFinding::Cap { connections } => {
                    cap.is_some_and(|cap| (connections - cap).abs() <= (0.05 * cap).max(1.0))
                }
                LimitFinding::NotReached { .. } => rate.is_none() && cap.is_none(),
                _ => false,
            };
            if !is_right {
                wrong.push(format!("{}: {}", profile.replace('\n', "; "), summary(&report, 0)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
