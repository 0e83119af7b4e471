import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Metrics } from "./metrics.ts";
import { ObjectTierMetrics } from "./object-tier-metrics.ts";
import { MAX_UNLISTED_SERIES, RepositoryLabelling } from "./repository-labels.ts";

/** Name, type and labels of every metric that the contract names (mission 000, "Events"; spec/svc.md section 2.6). */
const PROMISED = [
  ["svc_cache_fetch_total", "counter", ["result"]],
  ["svc_cache_lsrefs_total", "counter", []],
  ["svc_cache_warm_total", "counter", ["result"]],
  ["svc_cache_repos_active", "gauge", []],
  ["svc_cache_request_total", "counter", ["owner", "repo", "result"]],
  ["svc_cache_eviction_total", "counter", ["owner", "repo"]],
  ["svc_cache_response_size_bytes", "gauge", ["owner", "repo"]],
  ["svc_proxy_decision_duration_seconds", "histogram", ["stage"]],
  ["svc_cache_bytes_total", "counter", ["source"]],
  ["svc_cache_singleflight_followers_total", "counter", []],
  ["svc_cache_pack_seconds", "histogram", []],
  ["svc_upstream_request_duration_seconds", "histogram", ["kind", "status"]],
  ["svc_requests_in_flight", "gauge", []],
  ["svc_build_info", "gauge", ["version", "node"]],
] as const;

describe("Metrics", () => {
  it("has every metric that the contract names, with its type and labels [svc 5.1]", async () => {
    const metrics = new Metrics({ version: "1.2.3", activeRepositories: () => 4 });
    metrics.fetch("hit");
    metrics.lsRefsForwarded();
    metrics.warmed("error");
    metrics.request(metrics.labels.listed("O", "R"), "passthrough");
    metrics.evicted("O", "R", 2);
    metrics.responseSize("O", "R", 10);
    metrics.decision("cache_lookup", 0.001);
    metrics.bytesSent("pack", 5);
    metrics.followed();
    metrics.packMade(0.1);
    metrics.upstream("fetch", 200, 0.1);
    const { body } = await metrics.render();
    for (const [name, type, labels] of PROMISED) {
      assert.match(body, new RegExp(`^# TYPE ${name} ${type}$`, "m"));
      const sample = new RegExp(`^${name}(?:_count)?(?:\\{(.*)\\})? `, "m").exec(body);
      assert.ok(sample, name);
      const given = [...(sample[1] ?? "").matchAll(/(\w+)="/g)].map(([, label]) => label);
      assert.deepEqual(given, [...labels], name);
    }
    assert.match(body, /^svc_cache_repos_active 4$/m);
    assert.match(body, /^process_cpu_seconds_total /m);
    assert.match(body, /^svc_proxy_decision_duration_seconds_count\{stage="cache_lookup"\} 1$/m);
  });

  it("counts from 0: a series is there before its first event", async () => {
    const { body } = await new Metrics({ version: "1", processMetrics: false }).render();
    for (const result of ["hit", "miss", "rejected", "error"]) {
      assert.match(body, new RegExp(`^svc_cache_fetch_total\\{result="${result}"\\} 0$`, "m"));
    }
    for (const result of ["success", "error"]) {
      assert.match(body, new RegExp(`^svc_cache_warm_total\\{result="${result}"\\} 0$`, "m"));
    }
  });

  it("counts uploads to the bucket and refused manifests from 0, too", async () => {
    const metrics = new Metrics({ version: "1", processMetrics: false });
    void new ObjectTierMetrics(metrics.registry, ["forged"]);
    const { body } = await metrics.render();
    for (const result of ["success", "error", "dropped"]) {
      assert.match(
        body,
        new RegExp(`^svc_cache_object_upload_total\\{kind="mirror",result="${result}"\\} 0$`, "m"),
      );
    }
    assert.match(body, /^svc_cache_object_manifests_refused_total\{reason="forged"\} 0$/m);
  });
});

describe("RepositoryLabelling", () => {
  it("keeps the labels of a repository that was listed once, in the list's own writing [svc 5.8]", () => {
    const labels = new RepositoryLabelling();
    labels.listed("Org", "Repo");
    assert.deepEqual(labels.unlisted("oRG", "rEPO", false), { owner: "Org", repo: "Repo" });
  });

  it("gives labels to a limited number of unlisted repositories that exist [svc 5.8]", () => {
    const labels = new RepositoryLabelling();
    assert.deepEqual(labels.unlisted("o", "refused", false), { owner: "", repo: "" });
    for (let at = 0; at < MAX_UNLISTED_SERIES; at++) {
      assert.equal(labels.unlisted("O", `R${at}`, true).repo, `r${at}`);
    }
    assert.equal(MAX_UNLISTED_SERIES, 200);
    assert.deepEqual(labels.unlisted("o", "one-more", true), { owner: "", repo: "" });
    assert.equal(labels.unlisted("o", "r0", false).repo, "r0");
  });
});
