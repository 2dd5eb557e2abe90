{{- define "cdcpub.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "cdcpub" .Release.Name -}}
{{- .Release.Name -}}
{{- else -}}
{{- printf "%s-cdcpub" (.Release.Name | trunc 50 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* What is common to everything of a release. */}}
{{- define "cdcpub.ours" -}}
app.kubernetes.io/name: cdcpub
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "cdcpub.labels" -}}
{{ include "cdcpub.ours" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | trunc 63 | quote }}
{{- end -}}

{{/* What Deployment, Service and others select by. It can never change. */}}
{{- define "cdcpub.publishers" -}}
{{ include "cdcpub.ours" . }}
app.kubernetes.io/component: publisher
{{- end -}}

{{- define "cdcpub.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* The whole number of seconds of a duration such as 1m30s; nothing if it has
     other parts, which cdcpub judges. */}}
{{- define "cdcpub.seconds" -}}
{{- if regexMatch "^([0-9]+h)?([0-9]+m)?([0-9]+s)?$" . -}}
{{- $h := regexFind "[0-9]+h" . | trimSuffix "h" | int -}}
{{- $m := regexFind "[0-9]+m" . | trimSuffix "m" | int -}}
{{- $s := regexFind "[0-9]+s" . | trimSuffix "s" | int -}}
{{- add (mul $h 3600) (mul $m 60) $s -}}
{{- end -}}
{{- end -}}

{{/* The configuration, if it can work in this chart. cdcpub judges the rest. */}}
{{- define "cdcpub.config" -}}
{{- $c := fromYaml .Values.config -}}
{{- if $c.Error -}}
{{- fail (printf "config is no YAML: %s" $c.Error) -}}
{{- end -}}
{{- $http := $c.http | default dict -}}
{{- $listen := $http.listen | default "127.0.0.1:9477" -}}
{{- if not (hasSuffix ":9477" $listen) -}}
{{- fail (printf "config: http.listen is %s, and probes and Service are for port 9477: set it to 0.0.0.0:9477" $listen) -}}
{{- end -}}
{{- if regexMatch "^(127\\.|localhost:|\\[::1\\])" $listen -}}
{{- fail (printf "config: http.listen is %s, which the probes cannot reach: set it to 0.0.0.0:9477" $listen) -}}
{{- end -}}
{{- if eq ($c.on_stop | default "stay") "exit" -}}
{{- fail "config: on_stop is exit: Kubernetes would start the process again, and a new one takes what it finds, where a human must decide; set it to stay" -}}
{{- end -}}
{{- $shutdown := include "cdcpub.seconds" ($c.shutdown_timeout | default "10s") -}}
{{- if and $shutdown (ge (int $shutdown) (int .Values.terminationGracePeriodSeconds)) -}}
{{- fail (printf "terminationGracePeriodSeconds is %d, and must be above shutdown_timeout of config, which is %ss" (int .Values.terminationGracePeriodSeconds) $shutdown) -}}
{{- end -}}
{{- $sasl := ($c.kafka | default dict).sasl | default dict -}}
{{- if or $sasl.password ($sasl.oauth | default dict).client_secret -}}
{{- fail "config: a ConfigMap is no place for passwords: put it into the Secret, and name kafka.sasl.password_file, or oauth.client_secret_file" -}}
{{- end -}}
{{- if regexMatch "(://[^/@]*:[^/@]+@|(^|\\s)password\\s*=)" (($c.postgres | default dict).url | default "") -}}
{{- fail "config: a ConfigMap is no place for passwords: take it out of postgres.url, put it into the Secret, and name postgres.password_file" -}}
{{- end -}}
{{- .Values.config -}}
{{- end -}}

{{- define "cdcpub.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "cdcpub.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "cdcpub.volumeMounts" -}}
- name: config
  mountPath: /etc/cdcpub
  readOnly: true
- name: secret
  mountPath: /run/secrets/cdcpub
  readOnly: true
{{- end -}}

{{- define "cdcpub.volumes" -}}
- name: config
  configMap:
    name: {{ include "cdcpub.name" . }}
- name: secret
  secret:
    secretName: {{ .Values.secretName | default (include "cdcpub.name" .) }}
    defaultMode: 0440
{{- end -}}

{{/* What decides where a pod may run. */}}
{{- define "cdcpub.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
