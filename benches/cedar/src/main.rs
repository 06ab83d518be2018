//! The cost of one decision of Cedar's authorizer: may this agent call this tool?
//!
//! Every agent is in one of the roles, every tool in one or two of the groups. A policy permits one
//! role the tools of one group, so one permit holds for an allowed call; one more policy forbids the
//! tools of the group `blocked`. Requests, entities and policies are built in advance. A round cycles
//! through the requests of up to 1,024 agents, spread over all agents, until its time is up. The
//! entities are
//!
//! * a slice: one store for each request, of its agent, its role, the tool and the tool's groups,
//!   as an application loads it;
//! * a slice, built anew: the same, with building that store from its entities included in the time;
//! * everything: one store of all the agents, roles, tools and groups.
//!
//! Every response is compared with the expected decision.
//!
//!     cargo run --release --locked --manifest-path benches/cedar/Cargo.toml --target-dir target/cedar

use std::collections::HashSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityId, EntityUid, PolicySet, Request,
    get_sdk_version,
};

const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(25);
const SIZES: [Size; 3] = [Size::new(3, 3), Size::new(9, 11), Size::new(27, 37)];
const AGENTS: [usize; 3] = [1, 1_000, 100_000];
const REQUESTS: usize = 1_024;

/// The number of roles and groups. All pairs are permitted: with the `forbid`, 10, 100 or 1,000
/// policies.
#[derive(Clone, Copy)]
struct Size {
    roles: usize,
    groups: usize,
}

/// The three kinds of calls, each with its tool and expected decision.
const CALLS: [(&str, Decision); 3] = [
    ("shared", Decision::Allow),
    ("unlisted", Decision::Deny),
    ("blocked", Decision::Deny),
];

fn main() {
    println!(
        "cedar-policy {}, ns per decision: the fastest of {ROUNDS} rounds.\n",
        get_sdk_version()
    );
    println!("| policies | agents | entities | allowed | denied, no permit | denied, forbidden |");
    println!("|---|---|---|---|---|---|");
    let authorizer = Authorizer::new();
    for size in SIZES {
        let policies = size.policies();
        let decide = |request: &Request, entities: &Entities| {
            authorizer
                .is_authorized(request, &policies, entities)
                .decision()
        };
        for agents in AGENTS {
            let count = agents.min(REQUESTS);
            let asked: Vec<usize> = (0..count).map(|index| index * agents / count).collect();
            let everything = store(size.everything(agents));
            let mut rows = ["a slice", "a slice, built anew", "everything"]
                .map(|what| format!("| {} | {agents} | {what} |", policies.num_of_policies()));
            for (tool, expected) in CALLS {
                let requests: Vec<Request> =
                    asked.iter().map(|&agent| request(agent, tool)).collect();
                let slices: Vec<Vec<Entity>> =
                    asked.iter().map(|&agent| size.slice(agent, tool)).collect();
                let stores: Vec<Entities> = slices.iter().cloned().map(store).collect();
                let measure =
                    |answer: &Answer| format!(" {:.0} |", fastest_ns(&requests, expected, answer));
                rows[0] += &measure(&|at, request| decide(request, &stores[at]));
                rows[1] += &measure(&|at, request| decide(request, &store(slices[at].clone())));
                rows[2] += &measure(&|_, request| decide(request, &everything));
            }
            println!("{}", rows.join("\n"));
        }
    }
}

/// Takes the index of a request and the request.
type Answer<'a> = dyn Fn(usize, &Request) -> Decision + 'a;

/// The fastest round, which a busy machine disturbs least.
fn fastest_ns(requests: &[Request], expected: Decision, answer: &Answer) -> f64 {
    (0..ROUNDS)
        .map(|_| {
            let (start, mut decisions) = (Instant::now(), 0_u32);
            // The clock is read after every 16 decisions, so that reading it costs nothing.
            while start.elapsed() < ROUND {
                for _ in 0..16 {
                    let at = decisions as usize % requests.len();
                    let decision = black_box(answer(at, black_box(&requests[at])));
                    assert_eq!(decision, expected, "request {at}");
                    decisions += 1;
                }
            }
            start.elapsed().as_nanos() as f64 / f64::from(decisions)
        })
        .fold(f64::MAX, f64::min)
}

impl Size {
    const fn new(roles: usize, groups: usize) -> Self {
        Self { roles, groups }
    }

    fn policies(self) -> PolicySet {
        let mut text = String::from(
            r#"forbid(principal, action == Action::"call", resource in Group::"blocked");"#,
        );
        for role in 0..self.roles {
            for group in 0..self.groups {
                text += &format!(
                    r#"permit(principal in Role::"{role}", action == Action::"call", resource in Group::"{group}");"#
                );
            }
        }
        text.parse().expect("policies")
    }

    /// The agent, its role, the tool and its groups.
    fn slice(self, agent: usize, tool: &str) -> Vec<Entity> {
        let role = uid("Role", agent % self.roles);
        let mut entities = vec![
            entity(uid("Agent", agent), [role.clone()]),
            entity(role, []),
        ];
        entities.push(entity(uid("Tool", tool), self.groups_of(tool)));
        entities.extend(
            self.groups_of(tool)
                .into_iter()
                .map(|group| entity(group, [])),
        );
        entities
    }

    /// All of the agents, roles, tools and groups.
    fn everything(self, agents: usize) -> Vec<Entity> {
        let agents =
            (0..agents).map(|agent| entity(uid("Agent", agent), [uid("Role", agent % self.roles)]));
        let roles = (0..self.roles).map(|role| entity(uid("Role", role), []));
        let tools = CALLS.map(|(tool, _)| entity(uid("Tool", tool), self.groups_of(tool)));
        let named = ["unlisted", "blocked"].map(|group| entity(uid("Group", group), []));
        let groups = (0..self.groups).map(|group| entity(uid("Group", group), []));
        agents
            .chain(roles)
            .chain(tools)
            .chain(named)
            .chain(groups)
            .collect()
    }

    fn groups_of(self, tool: &str) -> Vec<EntityUid> {
        let permitted = uid("Group", self.groups - 1);
        match tool {
            "shared" => vec![permitted],
            "blocked" => vec![permitted, uid("Group", "blocked")],
            _ => vec![uid("Group", "unlisted")],
        }
    }
}

fn store(entities: Vec<Entity>) -> Entities {
    Entities::from_entities(entities, None).expect("entities")
}

fn entity(uid: EntityUid, parents: impl IntoIterator<Item = EntityUid>) -> Entity {
    Entity::new_no_attrs(uid, HashSet::from_iter(parents))
}

fn uid(kind: &str, id: impl ToString) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.parse().expect("a type"), EntityId::new(id.to_string()))
}

fn request(agent: usize, tool: &str) -> Request {
    let (principal, action, resource) = (
        uid("Agent", agent),
        uid("Action", "call"),
        uid("Tool", tool),
    );
    Request::new(principal, action, resource, Context::empty(), None).expect("a request")
}
