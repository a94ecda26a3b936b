//! Who may connect, and how: certificates and passwords.

use std::time::Duration;

use truekeep_adapter_postgres::{PostgresSource, RelationSpec};
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_postgres_server::Server;

use crate::fixture::{App, Asked, connect, run, text};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'x')";

async fn opened(address: &str) -> Result<PostgresSource, PortError> {
    PostgresSource::open(address, RelationSpec::of("t"), Duration::from_secs(2)).await
}

/// A port that nobody listens on just now.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// Runs openssl in the server's folder, as the server's user.
fn openssl(server: &Server, arguments: &str) {
    let folder = server.folder().expect("private");
    let mut command = server.command("openssl");
    let output = command.current_dir(folder).args(arguments.split(' ')).output().expect("openssl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes an authority, and a certificate of it for a host.
fn certificate(server: &Server, authority: &str, name: &str, host: &str) {
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(
        server,
        &format!(
            "req -x509 {key} -keyout {authority}.key -out {authority}.pem -days 30 -subj /CN={authority}"
        ),
    );
    openssl(server, &format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={host}"));
    let folder = server.folder().expect("private");
    std::fs::write(folder.join("names"), format!("subjectAltName=DNS:{host}")).expect("written");
    openssl(
        server,
        &format!(
            "x509 -req -in {name}.csr -CA {authority}.pem -CAkey {authority}.key -CAcreateserial -out {name}.pem -days 30 -extfile names"
        ),
    );
}

/// A server whose certificate is another host's or another authority's, or that has none, is refused where
/// it is to be verified, until an operator has mended it.
#[tokio::test]
async fn a_wrong_certificate_is_refused() {
    let port = free_port().to_string();
    let settings = [("listen_addresses", "127.0.0.1"), ("port", port.as_str())];
    let Some(server) = truekeep_postgres_server::private(&settings) else { return };
    let app = App::on(&server, TABLE).await;
    let mut home = connect(&server.address("postgres")).await;
    certificate(&server, "ours", "right", "localhost");
    certificate(&server, "ours", "other", "elsewhere.example");
    certificate(&server, "theirs", "foreign", "localhost");
    let folder = server.folder().expect("private").display().to_string();
    let database = &app.test.name;
    let verified = |authority: &str| {
        format!(
            "postgres://postgres@localhost:{port}/{database}?sslmode=verify-full&sslrootcert={folder}/{authority}.pem"
        )
    };
    for (certificate, authority, good) in [
        ("", "ours", false),
        ("other", "ours", false),
        ("foreign", "ours", false),
        ("foreign", "theirs", true),
    ] {
        if !certificate.is_empty() {
            for (name, end) in [("ssl_cert_file", "pem"), ("ssl_key_file", "key")] {
                run(
                    &mut home,
                    &format!("ALTER SYSTEM SET {name} = '{folder}/{certificate}.{end}'"),
                )
                .await;
            }
            run(&mut home, "ALTER SYSTEM SET ssl = on").await;
            server.stop();
            server.start();
            home = connect(&server.address("postgres")).await;
            assert_eq!(text(&mut home, "SELECT current_setting('ssl')").await, "on");
        }
        let answer = opened(&verified(authority)).await;
        if good {
            answer.expect("it is verified").captured().await;
            continue;
        }
        let error = answer.expect_err("it is not what it should be");
        assert_eq!(error.class, FailureClass::Halted, "{certificate} {}", error.chain());
    }
}

/// A password of any characters opens what it should, and stands in no error that a wrong one gives.
#[tokio::test]
async fn a_password_may_be_odd_and_is_told_nobody() {
    const PASSWORD: &str = "s3cr@/:%?# &=+\\'\"ü";
    const ENCODED: &str = "s3cr%40%2F%3A%25%3F%23%20%26%3D%2B%5C%27%22%C3%BC";
    let Some(server) = truekeep_postgres_server::private(&[]) else { return };
    let mut app = App::on(&server, TABLE).await;
    let quoted = PASSWORD.replace('\'', "''");
    app.run(&format!("CREATE ROLE worker LOGIN PASSWORD '{quoted}'; GRANT SELECT ON t TO worker"))
        .await;
    let rules = server.folder().expect("private").join("data/pg_hba.conf");
    let before = std::fs::read_to_string(&rules).expect("read");
    std::fs::write(&rules, format!("local all worker scram-sha-256\n{before}")).expect("written");
    app.run("SELECT pg_reload_conf()").await;
    app.until("SELECT count(*) > 0 FROM pg_hba_file_rules WHERE user_name = '{worker}'").await;
    let address = |password: &str| app.test.address_of(&format!("worker:{password}"));
    let source = opened(&address(ENCODED)).await.expect("the right one");
    assert!(!format!("{source:?}").contains("s3cr"));
    for wrong in ["s3cr", &format!("{ENCODED}s3cr"), "s3cr%40%2F"] {
        let error = opened(&address(wrong)).await.expect_err("a wrong one");
        assert_eq!(error.class, FailureClass::Halted, "{}", error.chain());
        for told in [error.chain(), format!("{error:?}")] {
            assert!(!told.contains("s3cr"), "{told}");
        }
    }
    // One that is taken away while a worker is at it.
    app.run("ALTER ROLE worker NOLOGIN").await;
    app.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'worker'")
        .await;
    let mut error = None;
    for _ in 0..6 {
        error = truekeep_core::ports::Records::load(&source, &[truekeep_core::Key::new("1")], 100)
            .await
            .err();
    }
    assert_eq!(error.expect("no way in").class, FailureClass::Halted);
}
