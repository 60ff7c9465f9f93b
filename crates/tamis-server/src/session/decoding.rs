//! Decodes the data of commands into values, before the command accesses the keyspace. A background
//! thread decodes large data.

use tamis_commands::{Data, Env, Value, decode_file, load_refusal, text};
use tamis_resp::Reply;

use crate::session::write_keys::restore::{Limit, NotDecoded, decode_payload, restore_refusal};
use crate::session::{Call, Session};
use crate::shared_state::SharedState;
use crate::system::held_memory::Hold;

/// The maximum length of data that the calling thread decodes, in bytes. A background thread
/// decodes data above this length.
const LONG_DATA_BYTES: usize = 256 << 10;

/// A value that was decoded from the data of a command. `hold` counts the memory of the value until
/// the value is stored under a key.
#[derive(Debug)]
pub(crate) struct Decoded {
    value: Value,
    hold: Hold,
}

impl Decoded {
    /// Returns the memory of the value, in bytes.
    pub fn bytes(&self) -> u64 {
        self.hold.bytes()
    }

    /// Returns the length of the value in the log, in bytes.
    pub fn image_bytes(&self) -> u64 {
        self.value.image_bytes()
    }

    /// Returns the value and stops counting the memory of the value in `hold`. When the value is
    /// stored under a key, the keyspace counts the memory of the value.
    pub fn into_value(self) -> Value {
        self.value
    }
}

impl Session {
    /// Decodes the data of a command. Returns `None` if the command has no data, or if the server
    /// would refuse the command now. If the reason for the refusal disappears before the command
    /// runs, the command decodes the data itself.
    pub async fn decode(&self, call: Call<'_>) -> Option<Result<Decoded, NotDecoded>> {
        if call.command.data(call.argv).is_none() || refuses_data(&self.server, call) {
            return None;
        }
        decode(&self.server, call).await
    }
}

/// Decodes the data of a command. Returns `None` if the command has no data.
pub(crate) async fn decode(
    server: &SharedState,
    Call { command, argv, env }: Call<'_>,
) -> Option<Result<Decoded, NotDecoded>> {
    Some(match command.data(argv)? {
        Data::Payload(data) => {
            // The remaining memory limits the size of the decoded value.
            decode_data(server, data, 0, payload_decoder(server, &env)).await
        }
        Data::File(data) => {
            // A decoded file takes about as much memory as its data.
            let decode = |data: &[u8]| decode_file(data).map_err(NotDecoded::Refused);
            decode_data(server, data, data.len() as u64, decode).await
        }
    })
}

/// Decodes data into a value of about `value_bytes` bytes.
async fn decode_data(
    server: &SharedState,
    data: &[u8],
    value_bytes: u64,
    decode: impl FnOnce(&[u8]) -> Result<Value, NotDecoded> + Send + 'static,
) -> Result<Decoded, NotDecoded> {
    let value = if data.len() <= LONG_DATA_BYTES {
        decode(data)?
    } else {
        let _permit = server.copies.acquire().await.expect("it is never closed");
        // Count the copy of the data and the decoded value.
        let bytes = data.len() as u64 + value_bytes;
        let Some(_hold) = server.reserve_memory(bytes) else {
            return Err(NotDecoded::Memory);
        };
        let data = data.to_vec();
        let decoding = tokio::task::spawn_blocking(move || decode(&data));
        decoding
            .await
            .map_err(|_| NotDecoded::Refused(Reply::error(text::server::NOT_COPIED)))??
    };
    // During the decoding, other clients may have decoded values. The decoded values of all clients
    // together must fit into `maxmemory`.
    let hold = server.reserve_memory(value.heap_bytes());
    let hold = hold.ok_or(NotDecoded::Memory)?;
    Ok(Decoded { value, hold })
}

/// Returns a function that decodes a payload. The decoded value must fit into the remaining memory
/// at the time of the call.
pub(crate) fn payload_decoder(
    server: &SharedState,
    env: &Env<'_>,
) -> impl FnOnce(&[u8]) -> Result<Value, NotDecoded> + Send + 'static {
    let limit = Limit { max_bytes: server.memory_left(), now_millis: env.now_millis };
    let max_filter_bytes = env.settings.max_filter_bytes;
    move |payload| decode_payload(payload, max_filter_bytes, limit)
}

/// Tests whether a command with data would fail at the time of the call, independent of the data.
/// Returns false for a command without data.
pub(crate) fn refuses_data(server: &SharedState, Call { command, argv, env }: Call<'_>) -> bool {
    let keys = server.keyspace.shared();
    match command.data(argv) {
        Some(Data::Payload(_)) => restore_refusal(argv, &env, &keys).is_some(),
        Some(Data::File(_)) => {
            let is_there = keys.read(argv[1], env.now_millis, |value| value.is_some());
            load_refusal(is_there, argv).is_some()
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use tamis_commands::find;
    use tamis_resp::Protocol;
    use tamis_testing::receive;

    use super::*;
    use crate::test_server;

    #[test]
    fn data_is_decoded_before_the_keys_are_locked() {
        let server = test_server::start();
        let shared = server.shared();
        // While the test holds exclusive access, a command that accesses the keyspace waits.
        let alone = shared.keyspace.exclusive();
        let (sender, decoded) = std::sync::mpsc::channel();
        let thread = shared.clone();
        std::thread::spawn(move || {
            let config = thread.config();
            let env = Env::new(&config.filters, Protocol::Resp2, 0);
            for data in [vec![0; 10], vec![0; LONG_DATA_BYTES + 1]] {
                let load: [&[u8]; 3] = [b"TM.LOAD", b"k", &data];
                let restore: [&[u8]; 4] = [b"RESTORE", b"k", b"0", &data];
                for argv in [&load[..], &restore] {
                    let decoding =
                        decode(&thread, Call { command: find(argv[0]).unwrap(), argv, env });
                    let result = test_server::block_on(decoding);
                    sender.send(result.is_some_and(|it| it.is_err())).unwrap();
                }
            }
        });
        for _ in 0..4 {
            assert!(receive("data that is decoded without the keys", &decoded));
        }
        drop(alone);
    }

    #[test]
    fn a_file_for_a_key_that_exists_is_refused_without_decoding() {
        let server = test_server::start();
        let shared = server.shared().clone();
        let (sender, answered) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // Take all permits, so that decoding in the background waits.
            shared.copies.forget_permits(usize::MAX);
            let mut session = test_server::session(&shared);
            let file = vec![0; LONG_DATA_BYTES + 1];
            for load in [&[&b"TM.LOAD"[..], b"k", &file][..], &[b"TM.LOAD", b"new", &file, b"NOW"]]
            {
                let commands = [&[&b"SET"[..], b"k", b"x"][..], load];
                let out = test_server::run(&mut session, &commands);
                sender.send(String::from_utf8(out).unwrap()).unwrap();
            }
        });
        for expected in ["+OK\r\n-ERR the key exists", "+OK\r\n-ERR TM.LOAD takes"] {
            let answer = receive("a refusal without decoding", &answered);
            assert!(answer.starts_with(expected), "{answer}");
        }
    }
}
