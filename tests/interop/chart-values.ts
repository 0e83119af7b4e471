export type Values = Readonly<Record<string, unknown>>;
export const BASE = {
  config: { server: { base_url: "https://git.example.com" } },
  existingSecret: "svc-env",
};
export const WITH_BUCKET = {
  existingSecret: "",
  secrets: { SVC_ENCRYPTION_KEY: "0".repeat(64), SVC_DATABASE_DSN: "postgres://svc@db/svc" },
  config: {
    server: { base_url: "https://git.example.com", drain_seconds: 300, trusted_proxies: ["10.0.0.0/8"] },
    host: { client_id: "Iv1.0123" },
    cache: { object_bucket: "git-cache", storage_path: "svc" },
  },
};
/** Sets of values that together use every part of the chart. */
export const SETS: Readonly<Record<string, Values>> = {
  "the least": BASE,
  everything: {
    ...WITH_BUCKET,
    imagePullSecrets: [{ name: "registry" }],
    autoscaling: { enabled: true, targetRequestsInFlight: 50 },
    ingress: { enabled: true, host: "git.example.com", tlsSecretName: "git-tls", annotations: { a: "b" } },
    networkPolicy: {
      enabled: true,
      from: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "ingress-nginx" } } }],
      metricsFrom: [{ namespaceSelector: {} }],
      extraEgress: [{ ports: [{ port: 9000 }], to: [{ ipBlock: { cidr: "10.1.0.0/16" } }] }],
    },
    serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
    localCache: { type: "ephemeral", size: "200Gi", storageClassName: "fast" },
    extraEnv: [{ name: "HTTPS_PROXY", value: "http://proxy:3128" }],
    extraVolumes: [{ name: "ca", configMap: { name: "ca" } }],
    extraVolumeMounts: [{ name: "ca", mountPath: "/etc/ca", readOnly: true }],
    affinity: { nodeAffinity: {} },
    nodeSelector: { disk: "nvme" },
    tolerations: [{ key: "ci", operator: "Exists" }],
    priorityClassName: "high",
    podAnnotations: { owner: "ci" },
    podLabels: { team: "ci" },
    serviceAccount: { annotations: { "eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/svc" } },
    service: { type: "LoadBalancer", annotations: { l: "b" } },
    image: { repository: "registry.example.com/svc", digest: `sha256:${"a".repeat(64)}` },
  },
  "one instance on SQLite": {
    ...BASE,
    config: { ...BASE.config, database: { driver: "sqlite" } },
    replicaCount: 1,
    data: { type: "claim", storageClassName: "fast" },
    migration: { mode: "init" },
  },
  "Vault as the database": {
    ...BASE,
    config: { ...BASE.config, database: { driver: "vault" }, vault: { auth_method: "kubernetes" } },
    serviceAccount: { automountToken: true },
    migration: { mode: "none" },
    readiness: { requireDatabase: true },
    ingress: { enabled: true, host: "g.example.com", consistentHash: "variable" },
  },
};
