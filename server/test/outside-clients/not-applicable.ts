/** Needs tools, prompts or resources of the suite's own reference server, by their names. */
const ofReferenceServer = (what: string) => `needs ${what} of a reference server`;
const notOffered = (what: string) => `needs ${what}, which the service does not offer and does not say it does`;

/**
 * Scenarios of the conformance suite that don't apply, each with its reason. What is not here must pass; what is here
 * and passes all the same, or is gone, fails the test, so that the list stays true.
 */
export const notApplicable: Readonly<Record<string, string>> = {
  'completion-complete': notOffered('completions'),
  'elicitation-sep1034-defaults': ofReferenceServer('the tool test_elicitation_sep1034_defaults'),
  'elicitation-sep1330-enums': ofReferenceServer('the tool test_elicitation_sep1330_enums'),
  'json-schema-2020-12': ofReferenceServer('the tool json_schema_2020_12_tool'),
  'logging-set-level': notOffered('logging'),
  'prompts-get-embedded-resource': ofReferenceServer('the prompt test_prompt_with_embedded_resource'),
  'prompts-get-simple': ofReferenceServer('the prompt test_simple_prompt'),
  'prompts-get-with-args': ofReferenceServer('the prompt test_prompt_with_arguments'),
  'prompts-get-with-image': ofReferenceServer('the prompt test_prompt_with_image'),
  'resources-read-binary': ofReferenceServer('the resource test://static-binary'),
  'resources-read-text': ofReferenceServer('the resource test://static-text'),
  'resources-subscribe': notOffered('subscriptions to resources'),
  'resources-templates-read': ofReferenceServer('the resource test://template/{id}/data'),
  'resources-unsubscribe': notOffered('subscriptions to resources'),
  'server-sse-multiple-streams': notOffered('sessions'),
  'server-sse-polling': notOffered('sessions, and streams that can be resumed'),
  'tools-call-audio': ofReferenceServer('the tool test_audio_content'),
  'tools-call-elicitation': ofReferenceServer('the tool test_elicitation'),
  'tools-call-embedded-resource': ofReferenceServer('the tool test_embedded_resource'),
  'tools-call-error': ofReferenceServer('the tool test_error_handling'),
  'tools-call-image': ofReferenceServer('the tool test_image_content'),
  'tools-call-mixed-content': ofReferenceServer('the tool test_multiple_content_types'),
  'tools-call-sampling': ofReferenceServer('the tool test_sampling'),
  'tools-call-simple-text': ofReferenceServer('the tool test_simple_text'),
  'tools-call-with-logging': ofReferenceServer('the tool test_tool_with_logging'),
  'tools-call-with-progress': ofReferenceServer('the tool test_tool_with_progress'),
};
