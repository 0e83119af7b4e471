{{- define "svc.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "svc.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "svc.labels" -}}
{{ include "svc.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "svc.image" -}}
{{- with .Values.image }}{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}{{ end }}
{{- end }}

{{- define "svc.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "svc.name" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "svc.secretName" -}}
{{- .Values.existingSecret | default (include "svc.name" .) }}
{{- end }}

{{- define "svc.hasSecret" -}}
{{- if or .Values.existingSecret .Values.secrets }}yes{{ end }}
{{- end }}

{{/* Refuses values that a schema cannot compare. */}}
{{- define "svc.check" -}}
{{- $config := .Values.config }}
{{- $server := $config.server | default dict }}
{{- $database := $config.database | default dict }}
{{- $cache := $config.cache | default dict }}
{{- if not $server.base_url }}{{ fail "config.server.base_url is not set: it is the address that users type, such as https://git-proxy.example.com" }}{{ end }}
{{- if and .Values.existingSecret .Values.secrets }}{{ fail "existingSecret and secrets are both set: put all variables into the Secret, or remove existingSecret" }}{{ end }}
{{- if not (include "svc.hasSecret" .) }}{{ fail "neither existingSecret nor secrets is set: the service needs SVC_ENCRYPTION_KEY, from a Secret" }}{{ end }}
{{- range $path := list "encryption.key" "encryption.key_previous" "database.dsn" "host.client_secret" "host.private_key" "host.webhook_secret" "cache.object_secret_access_key" "cache.object_key" "cache.object_key_previous" "cache.service_token" "vault.token" "vault.secret_id" "server.accel_secret" }}
{{- $parts := splitList "." $path }}
{{- $section := index $config (first $parts) | default dict }}
{{- if hasKey $section (last $parts) }}{{ fail (printf "config.%s is a secret, and a ConfigMap is not: set SVC_%s in the Secret" $path ($path | replace "." "_" | upper)) }}{{ end }}
{{- end }}
{{- range $path := list "server.listen" "metrics.listen" "cache.local_path" }}
{{- $parts := splitList "." $path }}
{{- $section := index $config (first $parts) | default dict }}
{{- if hasKey $section (last $parts) }}{{ fail (printf "config.%s is set by the chart: remove it" $path) }}{{ end }}
{{- end }}
{{- if hasKey $config "data_dir" }}{{ fail "config.data_dir is set by the chart: remove it" }}{{ end }}
{{- if and (hasKey $cache "storage_path") (not $cache.object_bucket) }}{{ fail "config.cache.storage_path is set by the chart, unless config.cache.object_bucket is set: remove it" }}{{ end }}
{{- $several := or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) }}
{{- if and $several (eq ($database.driver | default "sqlite") "sqlite") }}{{ fail "config.database.driver is sqlite, which only one instance can use: set it to postgres, or set replicaCount to 1 and autoscaling.enabled to false" }}{{ end }}
{{- if and $several (eq .Values.data.type "claim") }}{{ fail "data.type is claim, which only one instance can use: set it to emptyDir, or set replicaCount to 1" }}{{ end }}
{{- if and (eq .Values.migration.mode "job") (eq ($database.driver | default "sqlite") "sqlite") }}{{ fail "migration.mode is job, but only the pod can reach a SQLite file: set it to init" }}{{ end }}
{{- if and .Values.autoscaling.enabled (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) }}{{ fail "autoscaling.minReplicas is greater than autoscaling.maxReplicas" }}{{ end }}
{{- if and .Values.autoscaling.enabled (not .Values.autoscaling.targetCPUUtilizationPercentage) (not .Values.autoscaling.targetRequestsInFlight) }}{{ fail "autoscaling has no target: set autoscaling.targetCPUUtilizationPercentage or autoscaling.targetRequestsInFlight" }}{{ end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}{{ fail "ingress.host is not set: it is the host name of config.server.base_url" }}{{ end }}
{{- end }}

{{/* The configuration file, with what the chart decides. */}}
{{- define "svc.config" -}}
{{- $cache := .Values.config.cache | default dict }}
{{- $folder := ternary (dict "local_path" "/var/cache/svc/local") (dict "storage_path" "/var/cache/svc/local") (not (empty $cache.object_bucket)) }}
{{- $own := dict "data_dir" "/var/lib/svc/data" "server" (dict "listen" ":8080") "metrics" (dict "listen" ":9136") "cache" $folder }}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $own) }}
{{- end }}

{{- define "svc.drainSeconds" -}}
{{- $server := .Values.config.server | default dict }}
{{- if hasKey $server "drain_seconds" }}{{ int $server.drain_seconds }}{{ else }}90{{ end }}
{{- end }}

{{/* Arguments: dict "root" $ "config" name of the ConfigMap "secret" name of the Secret. */}}
{{- define "svc.environment" -}}
envFrom:
  - secretRef:
      name: {{ .secret }}
{{- with .root.Values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "svc.mounts" -}}
volumeMounts:
  - { name: config, mountPath: /etc/svc, readOnly: true }
  - { name: data, mountPath: /var/lib/svc }
  - { name: local-cache, mountPath: /var/cache/svc }
  - { name: tmp, mountPath: /tmp }
  {{- with .Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
