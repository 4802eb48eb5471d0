//! The variables that name certificates. As for proxies, an empty variable counts as not set.

use reqwest::Certificate;
use rustls::RootCertStore;
use std::ffi::OsString;
use std::path::Path;

/// Variables with a file and with a folder of certificates, which replace those of the system.
const CERTIFICATE_FILE: &str = "SSL_CERT_FILE";
const CERTIFICATE_FOLDER: &str = "SSL_CERT_DIR";
/// Start of a certificate in a file.
const PEM_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Lookup of environment variables.
type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Returns what is wrong with the certificates that the environment names.
pub(crate) fn certificate_problem() -> Option<String> {
    problem_in(&|name| std::env::var_os(name))
}

fn problem_in(environment: Environment<'_>) -> Option<String> {
    let variable = |name| environment(name).filter(|value| !value.is_empty());
    let file = variable(CERTIFICATE_FILE).and_then(|path| file_problem(Path::new(&path)));
    file.or_else(|| {
        let folders = variable(CERTIFICATE_FOLDER)?;
        // The TLS library skips empty entries.
        let missing = std::env::split_paths(&folders)
            .find(|folder| !folder.as_os_str().is_empty() && !folder.is_dir())?;
        Some(format!("{CERTIFICATE_FOLDER}: {} is not a folder", missing.display()))
    })
}

/// Returns the certificates of the operating system if `SSL_CERT_FILE` is empty, because the TLS library takes an empty
/// value for a path and then has no certificates. Otherwise the library finds them itself.
pub(super) fn replaced_certificates() -> Vec<Certificate> {
    replaced_in(&|name| std::env::var_os(name))
}

fn replaced_in(environment: Environment<'_>) -> Vec<Certificate> {
    let is_empty = |name| environment(name).is_some_and(|value| value.is_empty());
    let has_folder = environment(CERTIFICATE_FOLDER).is_some_and(|value| !value.is_empty());
    // The library for Apple's systems does not read the variables.
    if !is_empty(CERTIFICATE_FILE) || has_folder || cfg!(target_vendor = "apple") {
        return Vec::new();
    }
    let locations = openssl_probe::probe();
    let file = locations.cert_file.as_deref();
    let mut found = rustls_native_certs::load_certs_from_paths(file, None).certs;
    for folder in &locations.cert_dir {
        found.extend(rustls_native_certs::load_certs_from_paths(None, Some(folder)).certs);
    }
    found.sort_unstable_by(|one, other| one.as_ref().cmp(other.as_ref()));
    found.dedup();
    // One certificate that the library cannot use would make all of them unusable.
    found.retain(|certificate| RootCertStore::empty().add(certificate.clone()).is_ok());
    found.iter().filter_map(|certificate| Certificate::from_der(certificate).ok()).collect()
}

fn file_problem(path: &Path) -> Option<String> {
    let problem = match std::fs::read(path) {
        Ok(bytes) if String::from_utf8_lossy(&bytes).contains(PEM_CERTIFICATE) => return None,
        Ok(_) => "contains no certificate in PEM format".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("{CERTIFICATE_FILE}: {}: {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = &'static [(&'static str, &'static str)];

    fn environment(variables: Variables) -> impl Fn(&str) -> Option<OsString> {
        move |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        }
    }

    #[test]
    fn empty_variables_count_as_not_set() {
        let tables: [Variables; 4] = [
            &[],
            &[("SSL_CERT_FILE", "")],
            &[("SSL_CERT_DIR", "")],
            &[("SSL_CERT_FILE", ""), ("SSL_CERT_DIR", "/:")],
        ];
        for variables in tables {
            assert_eq!(problem_in(&environment(variables)), None, "{variables:?}");
        }
        let problem = problem_in(&environment(&[("SSL_CERT_DIR", "/no-such-folder")]));
        assert_eq!(problem.unwrap(), "SSL_CERT_DIR: /no-such-folder is not a folder");
    }

    #[test]
    fn certificates_of_the_system_replace_an_empty_variable() {
        let has_system_file = openssl_probe::probe().cert_file.is_some();
        let tables: [(Variables, bool); 4] = [
            (&[], false),
            (&[("SSL_CERT_FILE", "roots.pem")], false),
            (&[("SSL_CERT_FILE", ""), ("SSL_CERT_DIR", "/etc")], false),
            (&[("SSL_CERT_FILE", ""), ("SSL_CERT_DIR", "")], has_system_file),
        ];
        for (variables, expected) in tables {
            let replaced = replaced_in(&environment(variables));
            assert_eq!(!replaced.is_empty(), expected, "{variables:?}");
        }
    }

    #[test]
    fn unusable_certificate_files_are_described() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roots.pem");
        let problem = file_problem(&path).unwrap();
        assert!(problem.contains("roots.pem: No such file"), "{problem}");
        std::fs::write(&path, [0xff, 0x00]).unwrap();
        let problem = file_problem(&path).unwrap();
        assert!(problem.ends_with("contains no certificate in PEM format"), "{problem}");
        std::fs::write(&path, format!("# roots\n{PEM_CERTIFICATE}\n")).unwrap();
        assert_eq!(file_problem(&path), None);
    }
}
