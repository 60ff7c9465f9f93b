//! Tests the server with common Redis clients: redis-py, node-redis, ioredis, and Debian's
//! redis-cli and redis-benchmark.
//!
//! If the task cannot install a client, the task prints a message and skips the tests of this
//! client.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::steps::Steps;
use crate::tools::{self, Outcome, root, works};
use crate::{npm, python};

const TESTS: &str = "tests/clients";

/// Tests the Tamis server with each client.
pub fn test(steps: &Steps) -> Outcome {
    let program = tools::program();
    match python() {
        Ok(python) => steps.run("redis-py", redis_py(&python).arg(&program))?,
        Err(why) => steps.skip("redis-py", &why),
    }
    match node() {
        Ok(()) => steps.run("node-redis and ioredis", node_tests().env("TAMIS", &program))?,
        Err(why) => steps.skip("node-redis and ioredis", &why),
    }
    match debian() {
        Ok(()) => steps.check("redis-cli and redis-benchmark", redis_tools)?,
        Err(why) => steps.skip("redis-cli and redis-benchmark", &why),
    }
    Ok(())
}

/// Tests a Redis server that has loaded the module, with the Bloom and cuckoo commands of each
/// client.
pub fn test_module(steps: &Steps, server: &str, module: &Path) -> Outcome {
    if let Ok(python) = python() {
        steps.run("redis-py and the module", redis_py(&python).arg(server).arg(module))?;
    }
    if node().is_ok() {
        let mut tests = node_tests();
        steps
            .run("node-redis and the module", tests.env("SERVER", server).env("MODULE", module))?;
    }
    Ok(())
}

/// Returns the tests of redis-py, which take a program and a module.
fn redis_py(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.arg("tests/clients/redis_py.py").current_dir(root());
    command
}

/// Returns the tests of node-redis and ioredis.
fn node_tests() -> Command {
    let mut command = Command::new("node");
    command.args(["--test", "--test-reporter=spec", "tests/clients/node.test.js"]);
    command.current_dir(root()).env("MODULES", npm::modules(TESTS));
    command
}

/// Tests whether Debian's tools are installed.
pub fn debian() -> Outcome {
    if works(&mut Command::new("redis-cli")) && works(&mut Command::new("redis-benchmark")) {
        return Ok(());
    }
    Err("redis-tools could not be installed".to_owned())
}

/// Installs node-redis and ioredis.
pub fn node() -> Outcome {
    npm::install(TESTS, "ioredis")
}

/// Installs redis-py if necessary, and returns the path of the Python interpreter with redis-py.
pub fn python() -> Result<PathBuf, String> {
    let python = python::environment(&format!("{TESTS}/python"))?;
    if !python::works_quietly(Command::new(&python).args(["-c", "import redis"])) {
        python::install(&python, &["-r", &format!("{TESTS}/requirements.txt")])?;
    }
    Ok(python)
}

/// A running server. Dropping this value kills the process.
pub struct Server {
    child: Child,
    folder: PathBuf,
    pub port: String,
}

impl Server {
    /// Starts a server on a free port with a new data folder.
    pub fn start() -> Result<Self, String> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        drop(listener);
        let folder = std::env::temp_dir().join(format!("tamis-xtask-{port}"));
        let child = Command::new(tools::program())
            .args(["serve", "--port", &port.to_string(), "--http-port", "no", "--dir"])
            .arg(&folder)
            .current_dir(root())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let server = Self { child, folder, port: port.to_string() };
        let begun = Instant::now();
        while !is_ready(port) {
            if begun.elapsed() > Duration::from_secs(60) {
                return Err("the server did not start".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }
}

/// Tests whether the server responds to `PING`. An open port is not sufficient, because the server
/// listens before the server has loaded the data.
fn is_ready(port: u16) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(b"PING\r\n")?;
        let mut reply = [0; 7];
        stream.read_exact(&mut reply)?;
        Ok(&reply == b"+PONG\r\n")
    };
    ask().unwrap_or(false)
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Checks that redis-cli and redis-benchmark succeed and print no error.
fn redis_tools() -> Outcome {
    let server = Server::start()?;
    let mut benchmark = Command::new("redis-benchmark");
    benchmark.args(["-p", &server.port, "-q", "-n", "2000", "-t", "ping,set,get,incr"]);
    let mut filters = Command::new("redis-benchmark");
    filters.args(["-p", &server.port, "-q", "-n", "20000", "-P", "16", "-r", "1000000"]);
    filters.args(["BF.ADD", "seen", "__rand_int__"]);
    let mut info = Command::new("redis-cli");
    info.args(["-p", &server.port, "-3", "INFO", "filters"]);
    for (mut command, told) in
        [(benchmark, "requests per second"), (filters, "requests per second"), (info, "filters:1")]
    {
        let output = command.output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() || !complaints.is_empty() || !text.contains(told) {
            return Err(format!("{command:?} said {text} {complaints}"));
        }
    }
    Ok(())
}
